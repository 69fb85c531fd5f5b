import { workflowInfo } from '@temporalio/workflow';
import { jitterOf } from '../../domain/subscription/jitter.ts';
import { isOnCheckoutQueue } from '../task-queues.ts';
import type { Run } from './run.ts';

/** Past this a run begins nothing more on its own: the next run does. */
const HISTORY_EVENTS_MAX = 400;
/**
 * About a year of monthly renewals. What wakes a run that no worker has cached is replayed from its
 * first event, so a sleeping history stays short.
 */
const HISTORY_EVENTS_LONG = 100;
/** A long run ends 30 min to 6.5 h after it last did something: not while thousands renew. */
const QUIET_AFTER_MS = 30 * 60_000;
const QUIET_WINDOW_MS = 6 * 3_600_000;
/** A paid run leaves the checkout queue soon, but not while its payer waits for the page. */
const MOVE_AFTER_MS = 5_000;
const MOVE_WINDOW_MS = 25_000;

export function hasRoom(): boolean {
  return workflowInfo().historyLength < HISTORY_EVENTS_MAX;
}

/**
 * The real instant at which an idle run should make room for its successor; null while it is short
 * and on the right queue. A run on the checkout queue moves to the billing queue once it is paid.
 */
export function successorDueAt(run: Run): number | null {
  if (run.hasAnsweredUnavailable) return run.clock.realNow;
  const isLong = workflowInfo().historyLength >= HISTORY_EVENTS_LONG;
  const isMisplaced = isOnCheckoutQueue() && run.state.status !== 'CREATED' && !run.hasLeftCheckout;
  if (!isLong && !isMisplaced) return null;
  // A test clock has no peak, and its owner waits.
  if (run.clock.isTestClock) return isLong ? run.clock.realNow : null;
  const [afterMs, windowMs] =
    isMisplaced && run.isOfSecondShape
      ? [MOVE_AFTER_MS, MOVE_WINDOW_MS]
      : [QUIET_AFTER_MS, QUIET_WINDOW_MS];
  run.quietAt ??= run.clock.realNow + afterMs + jitterOf(run.state.subscriptionId, windowMs);
  return run.quietAt;
}
