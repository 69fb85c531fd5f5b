import {
  ActivityFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { DrainEndpointResult } from '../../activities/webhooks/drain.ts';
import type { WebhookActivities } from '../../activities/webhooks/delivery.ts';
import { WEBHOOK_DELIVERY, siblingTaskQueue } from '../activity-calls.ts';
import { breakerClosed, ping, wake, WEBHOOK_ENDPOINT_PRIORITY } from './messages.ts';
import type { EndpointRef } from '../../domain/endpoint-breaker.ts';

/** A run whose history has this many events, about a hundred drains, continues as new. */
const EVENTS_PER_RUN = 400;

/** Backoff in ms after failed drains, for example while the database is unreachable. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Sends the deliveries of one endpoint that the committing process did not send, until the endpoint accepts them or the
 * schedule is used up. While the breaker is open, only `breakerClosed` ends the pause before the next probe.
 */
export async function webhookEndpoint(input: EndpointRef): Promise<void> {
  let isWoken = false;
  let isBreakerClosed = false;
  let failedDrains = 0;
  const description = 'Look for pending deliveries: now, or at the end of a pause.';
  setHandler(wake, () => void (isWoken = true), { description });
  setHandler(
    breakerClosed,
    () => {
      isWoken = true;
      isBreakerClosed = true;
    },
    { description: 'Read the configuration again, and send at once if its breaker is closed.' },
  );
  const { drainEndpoint, pingEndpoint } = proxyActivities<WebhookActivities>({
    ...WEBHOOK_DELIVERY,
    taskQueue: siblingTaskQueue('webhooks'),
    summary: `events for ${input.configId}`,
    priority: { fairnessKey: input.merchantId, priorityKey: WEBHOOK_ENDPOINT_PRIORITY },
  });
  setHandler(ping, () => pingEndpoint(input), {
    description: 'Send a webhook.ping, also to an inactive endpoint.',
  });

  for (;;) {
    isWoken = false;
    isBreakerClosed = false;
    setCurrentDetails('Sending due deliveries.');
    let left: DrainEndpointResult | null;
    try {
      left = await drainEndpoint({ ...input, nowAt: now() });
      failedDrains = 0;
    } catch (error) {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
      log.warn('a drain failed', { reason: error.cause?.message ?? error.message });
      left = null;
      failedDrains += 1;
    }

    // During a pause nothing wakes the queue, so the run waits for the end of the pause even if nothing remains.
    if (left?.remaining === 0 && left.pausedMs === 0) {
      await condition(() => isWoken || allHandlersFinished());
      if (!isWoken) return;
    }

    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested || historyLength >= EVENTS_PER_RUN) {
      await condition(allHandlersFinished);
      await continueAsNew<typeof webhookEndpoint>(input);
    }

    const wait = nextWait(left, failedDrains);
    setCurrentDetails(wait.details);
    const isInterrupted = () => (wait.isPause ? isBreakerClosed : isWoken);
    if (!isInterrupted()) {
      await condition(isInterrupted, wait.delayMs, { summary: wait.summary });
    }
  }
}

function nextWait(left: DrainEndpointResult | null, failedDrains: number) {
  if (!left) {
    const delayMs = Math.min(FIRST_PAUSE_MS * 2 ** (failedDrains - 1), LONGEST_PAUSE_MS);
    const details = `The last drain failed; the next one is at ${timeAfter(delayMs)}.`;
    const summary = `next drain after ${failedDrains} failed`;
    return { delayMs, isPause: true, details, summary };
  }
  const isPause = left.pausedMs > 0;
  const delayMs = left.nextDelayMs ?? 0;
  const what = left.remaining === 1 ? '1 delivery' : `${left.remaining} deliveries`;
  const [next, summary] = isPause
    ? ['The endpoint is down; next probe', `next probe with one of ${what}`]
    : ['Next attempt', `next attempt of ${what}`];
  return { delayMs, isPause, details: `${what} left. ${next} at ${timeAfter(delayMs)}.`, summary };
}

function timeAfter(delayMs: number): string {
  return new Date(now() + delayMs).toISOString();
}

function now(): number {
  // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
  return Date.now();
}
