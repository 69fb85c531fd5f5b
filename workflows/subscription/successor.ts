import { condition, makeContinueAsNewFunc, workflowInfo } from '@temporalio/workflow';
import { jitterOf } from '../../domain/subscription/jitter.ts';
import { WORKFLOW_TASK_TIMEOUT } from '../messages.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { attributesOf, fixedAttributesOf, memoOf, productNameOf, receiptIdIn } from './messages.ts';
import type { SubscriptionInput, SubscriptionResult } from './messages.ts';
import { interruptionOf } from './plan.ts';
import type { Facts } from './plan.ts';
import type { Run } from './run.ts';

/** A run with this many events continues as new before it sleeps or moves its test clock. */
const HISTORY_EVENTS_MAX = 400;
/**
 * An idle run with this many events (about a year of monthly renewals) continues as new. A worker that has
 * not cached the run replays the whole history, so the history must stay short.
 */
const HISTORY_EVENTS_LONG = 100;
/** A run that has become long continues as new 30 min to 6.5 h later, to avoid the peak of the renewals. */
const QUIET_AFTER_MS = 30 * 60_000;
const QUIET_WINDOW_MS = 6 * 3_600_000;
/** A run leaves the checkout queue 5 to 30 s after the checkout, when the payer no longer waits. */
const MOVE_AFTER_MS = 5_000;
const MOVE_WINDOW_MS = 25_000;

/** If a run lasted less than this time in ms, Temporal delays its successor. */
const RUN_AGE_MS_MIN = 1_000;

export function hasRoom(): boolean {
  return workflowInfo().historyLength < HISTORY_EVENTS_MAX;
}

/**
 * Returns the real time at which an idle run continues as new: to answer anew, to shorten its history or to leave the
 * checkout queue. Null if no new run is needed.
 */
export function successorDueAt(run: Run): number | null {
  if (run.hasAnsweredForNow) return run.clock.realNow;
  const isLong = workflowInfo().historyLength >= HISTORY_EVENTS_LONG;
  const isMisplaced = run.isOnCheckoutQueue && run.state.status !== 'CREATED';
  if (!isLong && !isMisplaced) return null;
  // On a test clock a long run continues as new at once: there is no peak, and the caller that advanced the
  // clock waits.
  if (run.clock.isTestClock) return isLong ? run.clock.realNow : null;
  const [afterMs, windowMs] = isMisplaced
    ? [MOVE_AFTER_MS, MOVE_WINDOW_MS]
    : [QUIET_AFTER_MS, QUIET_WINDOW_MS];
  run.quietAt ??= run.clock.realNow + afterMs + jitterOf(run.state.subscriptionId, windowMs);
  return run.quietAt;
}

/**
 * Continues as new, unless a message brings work. A run younger than 1 s waits first: Temporal would delay its
 * successor, which would be deaf meanwhile.
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
  const next = makeContinueAsNewFunc<(input: SubscriptionInput) => Promise<SubscriptionResult>>({
    typedSearchAttributes: [
      ...attributesOf(state),
      ...fixedAttributesOf(receiptIdIn(workflowInfo().typedSearchAttributes)),
    ],
    memo: memoOf(state, productNameOf(workflowInfo())),
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
    ...(state.status === 'CREATED' ? {} : { taskQueue: siblingTaskQueue('billing') }),
  });
  return next({
    state,
    clock: clock.snapshot,
    deliver: false,
    needsResync: run.needsResync,
    isOnCheckoutQueue: run.isOnCheckoutQueue && state.status === 'CREATED',
  });
}
