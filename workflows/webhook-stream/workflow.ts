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
import type { DeliverPendingResult, WebhookActivities } from '../../activities/webhooks.ts';
import { WEBHOOK_DELIVERY } from '../options.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { wake } from './messages.ts';
import type { WebhookStreamInput } from './messages.ts';

/** A run whose history has this many events, about a hundred rounds, continues as new. */
const EVENTS_PER_RUN = 400;

/** Backoff in ms after failed rounds, for example while the database is unreachable. */
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * Delivers the events of one stream. No release starts this workflow any more; the code is kept for open
 * runs. `deliverPending` now always returns `remaining: 0`, so a run ends after its next round unless a
 * signal came. Rule: D-54.
 *
 * 1. Round: one activity sends the due deliveries. It returns how many remain and when the next one is due.
 * 2. If none remains and no signal came during the round, end.
 * 3. If the history is long, continue as new. The new run begins with a round.
 * 4. Sleep until the next attempt is due or `wake` arrives. Then begin another round.
 */
export async function webhookStream(input: WebhookStreamInput): Promise<void> {
  let isWoken = false;
  let failedRounds = 0;
  setHandler(
    wake,
    () => {
      isWoken = true;
    },
    { description: 'Look for pending deliveries now.' },
  );
  const { deliverPending } = proxyActivities<WebhookActivities>({
    ...WEBHOOK_DELIVERY,
    // No retries: a retried activity would use an outdated `nowAt`. The loop starts a new round.
    retry: { maximumAttempts: 1 },
    taskQueue: siblingTaskQueue('webhooks'),
    summary: `events of ${input.streamId}`,
    priority: { fairnessKey: input.merchantId },
  });

  for (;;) {
    // 1
    isWoken = false;
    setCurrentDetails('Sending due deliveries.');
    let left: DeliverPendingResult | null;
    try {
      left = await deliverPending({ ...input, nowAt: now(), handOver: false });
      failedRounds = 0;
    } catch (error) {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
      log.warn('a round of deliveries failed', { reason: error.cause?.message ?? error.message });
      left = null;
      failedRounds += 1;
    }

    // 2
    if (left?.remaining === 0 && !isWoken) return;

    // 3
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested || historyLength >= EVENTS_PER_RUN) {
      await continueAsNew<typeof webhookStream>(input);
    }

    // 4
    if (isWoken) continue;
    const wait = nextWait(left, failedRounds);
    setCurrentDetails(wait.details);
    await condition(() => isWoken, wait.delayMs, { summary: wait.summary });
  }
}

function nextWait(left: DeliverPendingResult | null, failedRounds: number) {
  const delayMs = left
    ? (left.nextDelayMs ?? 0)
    : Math.min(FIRST_PAUSE_MS * 2 ** (failedRounds - 1), LONGEST_PAUSE_MS);
  const nextAt = new Date(now() + delayMs).toISOString();
  if (!left) {
    const details = `The last round failed; the next one is at ${nextAt}.`;
    return { delayMs, details, summary: `next round after ${failedRounds} failed` };
  }
  const what = left.remaining === 1 ? '1 delivery' : `${left.remaining} deliveries`;
  const details = `${what} left. Next attempt at ${nextAt}.`;
  return { delayMs, details, summary: `next attempt of ${what}` };
}

function now(): number {
  // oxlint-disable-next-line no-restricted-properties -- the sandbox's clock: workflow time
  return Date.now();
}
