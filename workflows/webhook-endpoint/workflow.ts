import {
  ActivityFailure,
  condition,
  continueAsNew,
  isCancellation,
  log,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { DrainEndpointResult } from '../../activities/endpoint-drain.ts';
import type { WebhookActivities } from '../../activities/webhooks.ts';
import { WEBHOOK_DELIVERY } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { breakerClosed, wake, WEBHOOK_ENDPOINT_PRIORITY } from './messages.ts';
import type { WebhookEndpointInput } from './messages.ts';

/** A run whose history has this many events, about a hundred drains, continues as new. */
const EVENTS_PER_RUN = 400;

/** Backoff in ms after failed drains, for example while the database is unreachable. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * The delivery queue of one endpoint. Sends the deliveries that the dispatcher did not send, until the
 * endpoint accepts them or the schedule is used up. Rule: D-54.
 *
 * 1. Drain: one activity sends the due deliveries, and returns how many remain and when the next is due.
 * 2. If none remains, the breaker does not pause and no signal came during the drain, end. The next `wake` starts a
 *    new run. During a pause nothing wakes the queue, so a run also waits for the end of the pause if none remains.
 * 3. If the history is long, continue as new. The new run begins with a drain.
 * 4. Sleep until the next attempt is due or `wake` arrives. While the endpoint's circuit breaker is open, only
 *    `breakerClosed` ends the pause before the next probe.
 */
export async function webhookEndpoint(input: WebhookEndpointInput): Promise<void> {
  let isWoken = false;
  let isBreakerClosed = false;
  let failedDrains = 0;
  setHandler(
    wake,
    () => {
      isWoken = true;
    },
    { description: 'Look for pending deliveries now.' },
  );
  setHandler(
    breakerClosed,
    () => {
      isWoken = true;
      isBreakerClosed = true;
    },
    { description: 'A change of the configuration closed the breaker: send at once.' },
  );
  const { drainEndpoint } = proxyActivities<WebhookActivities>({
    ...WEBHOOK_DELIVERY,
    // No retries: a retried activity would use an outdated `nowAt`. The loop starts a new drain.
    retry: { maximumAttempts: 1 },
    taskQueue: siblingTaskQueue('webhooks'),
    summary: `events for ${input.configId}`,
    priority: { fairnessKey: input.merchantId, priorityKey: WEBHOOK_ENDPOINT_PRIORITY },
  });

  for (;;) {
    // 1
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

    // 2
    if (left?.remaining === 0 && !(left.pausedMs > 0) && !isWoken) return;

    // 3
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested || historyLength >= EVENTS_PER_RUN) {
      await continueAsNew<typeof webhookEndpoint>(input);
    }

    // 4
    const wait = nextWait(left, failedDrains);
    const pausedUntil = now() + wait.pausedMs;
    setCurrentDetails(wait.details);
    // Usually one timer. After a `wake` during a pause, a second timer covers the rest of the pause.
    if (wait.delayMs > wait.pausedMs && !isWoken) {
      await condition(() => isWoken, wait.delayMs, { summary: wait.summary });
    }
    if (now() < pausedUntil && !isBreakerClosed) {
      await condition(() => isBreakerClosed, pausedUntil - now(), { summary: wait.summary });
    }
  }
}

function nextWait(left: DrainEndpointResult | null, failedDrains: number) {
  if (!left) {
    const delayMs = Math.min(FIRST_PAUSE_MS * 2 ** (failedDrains - 1), LONGEST_PAUSE_MS);
    const details = `The last drain failed; the next one is at ${timeAfter(delayMs)}.`;
    const summary = `next drain after ${failedDrains} failed`;
    return { delayMs, pausedMs: delayMs, details, summary };
  }
  const delayMs = left.nextDelayMs ?? 0;
  const { pausedMs } = left;
  const what = left.remaining === 1 ? '1 delivery' : `${left.remaining} deliveries`;
  return pausedMs > 0
    ? {
        delayMs,
        pausedMs,
        details: `${what} left. The endpoint is down; next probe at ${timeAfter(delayMs)}.`,
        summary: `next probe with one of ${what}`,
      }
    : {
        delayMs,
        pausedMs,
        details: `${what} left. Next attempt at ${timeAfter(delayMs)}.`,
        summary: `next attempt of ${what}`,
      };
}

function timeAfter(delayMs: number): string {
  return new Date(now() + delayMs).toISOString();
}

function now(): number {
  // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
  return Date.now();
}
