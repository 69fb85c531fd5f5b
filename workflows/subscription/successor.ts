import { condition, makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';
import { jitterOf } from '../../domain/subscription/jitter.ts';
import { WORKFLOW_TASK_TIMEOUT } from '../messages.ts';
import { isOnCheckoutQueue, siblingTaskQueue } from '../task-queues.ts';
import { attributesOf } from './messages.ts';
import type { SubscriptionInput } from './messages.ts';
import { interruptionOf } from './plan.ts';
import type { Facts } from './plan.ts';
import type { Run } from './run.ts';

/** A run with a longer history takes nothing more on its own account: its successor does. */
const HISTORY_EVENTS_MAX = 400;
/**
 * About a year of monthly renewals. A run that no worker has cached is replayed from its first event, so
 * a sleeping history stays short.
 */
const HISTORY_EVENTS_LONG = 100;
/** A long run hands over 30 min to 6.5 h after its last work, which is not while thousands renew. */
const QUIET_AFTER_MS = 30 * 60_000;
const QUIET_WINDOW_MS = 6 * 3_600_000;
/** A paid run leaves the checkout queue 5 to 30 s later: its payer no longer waits for the page. */
const MOVE_AFTER_MS = 5_000;
const MOVE_WINDOW_MS = 25_000;

/** The server starts a successor at once only if the run before it lived this long. */
const RUN_AGE_MS_MIN = 1_000;

export function hasRoom(): boolean {
  return workflowInfo().historyLength < HISTORY_EVENTS_MAX;
}

/**
 * Real time at which an idle run hands over to its successor; null while its history is short and its
 * queue is the right one. A paid run on the checkout queue belongs on the billing queue.
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

/**
 * Continues as new. A run younger than 1 s waits first, because the server would delay its successor, and
 * a delayed run hears no message. Returns when work arrives meanwhile.
 */
export async function handOver(run: Run, facts: Facts): Promise<void> {
  const ageMs = run.clock.realNow - workflowInfo().runStartTime.getTime();
  if (ageMs < RUN_AGE_MS_MIN) {
    const isWoken = await condition(() => interruptionOf(facts) !== null, RUN_AGE_MS_MIN - ageMs, {
      summary: 'let the run be a second old',
    });
    if (isWoken) return;
  }
  await continueAsNew(run);
}

async function continueAsNew(run: Run): Promise<never> {
  const { state, clock } = run;
  const next = makeContinueAsNewFunc<(input: SubscriptionInput) => Promise<void>>({
    typedSearchAttributes: attributesOf(state),
    memo: { subscriptionId: state.subscriptionId, merchantId: state.merchantId },
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
    ...(state.status === 'CREATED' ? {} : { taskQueue: siblingTaskQueue('billing') }),
  });
  return next({
    state,
    clock: clock.snapshot,
    deliver: false,
    isInDoubt: run.needsResync,
    isLocalFirst: true,
    shape: 2,
    ...(state.status === 'CREATED' ? {} : { hasLeftCheckout: true }),
  });
}
