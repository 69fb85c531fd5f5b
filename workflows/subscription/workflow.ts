import {
  allHandlersFinished,
  CancellationScope,
  condition,
  makeContinueAsNewFunc,
  patched,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { decide } from '../../domain/subscription/decide.ts';
import type { Step, Wait } from '../../domain/subscription/decide.ts';
import { takeFirstCommand, UNAVAILABLE } from './commands.ts';
import { Deliveries } from './deliveries.ts';
import { onCancellationRequest, registerHandlers } from './handlers.ts';
import { attributesOf } from './messages.ts';
import type { SubscriptionInput } from './messages.ts';
import { siblingTaskQueue } from '../task-queues.ts';
import { WORKFLOW_TASK_TIMEOUT } from '../messages.ts';
import { Run } from './run.ts';
import { hasRoom, successorDueAt } from './run-length.ts';
import { Steps } from './steps.ts';

/** The server starts a successor at once only if the run before it lived this long. */
const RUN_AGE_MS_MIN = 1_000;

/**
 * One subscription, from its creation to its end.
 *
 * 1. Restore: state from the argument, every handler registered before the first await.
 * 2. Work: take commands and do what is due, one thing at a time, until neither is left.
 * 3. Move the test clock, if there is one, to the next due instant and work again; at its target, say
 *    so.
 * 4. Drain: no command, handler or delivery is left open when a run ends.
 * 5. End, or continue as new: a long run at a quiet moment (`run-length.ts`).
 * 6. Sleep: exactly one timer, until the next due instant or a command.
 *
 * A renewal is one workflow task: the timer fires, the charge runs as a local activity, the next timer
 * starts. Runs that began before that (`isLocalFirst` is absent) use activity queues and continue as
 * new after every change.
 *
 * Rules: D-§4, D-05, D-30, D-31, D-32, D-60.
 */
export async function subscription(input: SubscriptionInput): Promise<void> {
  // 1. Restore.
  const run = new Run(input);
  registerHandlers(run);
  onCancellationRequest(run);
  const deliveries = new Deliveries(run);
  const steps = new Steps(run, deliveries);

  await CancellationScope.nonCancellable(async () => {
    if (input.deliver) await deliveries.begin();
    let isChanged = false;
    for (;;) {
      // 2. Work.
      isChanged = (await work(run, steps)) || isChanged;

      // 3. Move the test clock.
      if (mayMoveClock(run) && (await moveClock(run, steps))) continue;

      // 4. Drain.
      await condition(() => shouldWake(run) || (allHandlersFinished() && !deliveries.isInFlight));
      if (shouldWake(run) || isDue(run)) continue;

      // 5. End or continue.
      if (next(run).do === 'finish' && run.inbox.isEmpty && !run.needsResync) {
        upsertSearchAttributes(attributesOf(run.state));
        return;
      }
      const isAtRest = !run.needsResync && !isBackingOff(run);
      const isOver = isAtRest && (run.isLocalFirst ? isSuccessorDue(run) : isChanged);
      if (run.inbox.isEmpty && (isOver || !hasRoom()) && (await isOldEnough(run))) {
        await continueAsNew(run);
      }

      // 6. Sleep.
      if (!shouldWake(run)) await sleep(run);
    }
  });
}

function next(run: Run): Step {
  return decide(run.state, run.clock.now, run.clock.realNow);
}

/** An activity gave up a moment ago: only what somebody waits for is tried before the hold is over. */
function isBackingOff(run: Run): boolean {
  return run.clock.realNow < run.backoffUntilAt;
}

/** A command to take, or a doubt to settle, now. */
function hasWork(run: Run): boolean {
  return run.inbox.isAwaited || (!isBackingOff(run) && (!run.inbox.isEmpty || run.needsResync));
}

/** The rules name something to do now. */
function isDue(run: Run): boolean {
  const step = next(run);
  return step.do !== 'wait' && step.do !== 'finish' && !isBackingOff(run);
}

/** Idle, long enough, and the quiet moment has come. */
function isSuccessorDue(run: Run): boolean {
  const dueAt = successorDueAt(run);
  return dueAt !== null && run.clock.realNow >= dueAt;
}

/** Not on top of a doubt: what is due next may be another thing than this run believes. */
function mayMoveClock(run: Run): boolean {
  return run.clock.isTestClock && hasRoom() && !run.needsResync && !isBackingOff(run);
}

/** A test clock was sent on, and nothing that happens in real time holds it. */
function canMoveClock(run: Run): boolean {
  const step = next(run);
  return mayMoveClock(run) && run.clock.isBehind && step.do === 'wait' && step.time === 'own';
}

/** A reason to stop waiting: a command, a doubt, or a test clock that can go on. */
function shouldWake(run: Run): boolean {
  return hasWork(run) || canMoveClock(run);
}

/** True if anything was done. */
async function work(run: Run, steps: Steps): Promise<boolean> {
  let isChanged = false;
  for (;;) {
    // What a command or a date is judged by has to be what is recorded.
    if (hasWork(run) && run.needsResync) {
      if (await steps.resync()) continue;
      run.inbox.answerAwaited(UNAVAILABLE);
      run.hasAnsweredUnavailable = true;
      return isChanged || run.isLocalFirst || patched('doubts-are-kept');
    }
    const step = next(run);
    if (hasWork(run)) await takeFirstCommand(run, steps);
    else if (step.do !== 'wait' && step.do !== 'finish' && isDue(run)) await steps.take(step);
    else return isChanged;
    isChanged = true;
  }
}

/** True if there is more to do at the instant the clock now shows. */
async function moveClock(run: Run, steps: Steps): Promise<boolean> {
  const step = next(run);
  // While a gateway is asked, or the end has come, the clock stands.
  if (step.do !== 'wait' || step.time === 'real') return false;
  if (run.clock.stepTo(step.until)) return true;
  await steps.reportClockReached();
  return false;
}

/** A younger run sleeps the rest of its second here, not deaf as it would be in the next one. */
async function isOldEnough(run: Run): Promise<boolean> {
  const ageMs = run.clock.realNow - workflowInfo().runStartTime.getTime();
  if (ageMs >= RUN_AGE_MS_MIN) return true;
  const isWoken = await condition(() => shouldWake(run), RUN_AGE_MS_MIN - ageMs, {
    summary: 'let the run be a second old',
  });
  return !isWoken;
}

/**
 * What comes while a run sleeps makes its history longer: past the limit it wakes, for the next run to
 * go on. Not while an activity is let rest: that is slept out first, or the loop would spin.
 */
function isFull(run: Run): boolean {
  return !hasRoom() && !isBackingOff(run) && (run.isLocalFirst || patched('full-runs-wake'));
}

async function sleep(run: Run): Promise<void> {
  const { clock } = run;
  const isOver = (): boolean => shouldWake(run) || isFull(run);
  if (run.isLocalFirst) run.publishAttributes();
  const step = next(run);
  const holdMs = run.backoffUntilAt - clock.realNow;
  if (holdMs > 0 || step.do !== 'wait') {
    // An activity gave up; what it was for is tried again after a while.
    await condition(isOver, Math.max(1, holdMs), { summary: 'try again' });
    return;
  }
  const wait = timerFor(run, step);
  if (wait) await condition(isOver, wait.ms, { summary: wait.summary });
  else await condition(isOver);
}

/** What ends the sleep by itself: what is due next, or before that the end of a long run. */
function timerFor(run: Run, step: Wait): { ms: number; summary: string } | null {
  const { clock } = run;
  const isOnTestClock = clock.isTestClock && step.time === 'own';
  const now = step.time === 'real' ? clock.realNow : clock.now;
  const due =
    step.until === null || isOnTestClock ? null : { ms: step.until - now, summary: step.reason };
  const successorAt = run.isLocalFirst ? successorDueAt(run) : null;
  if (successorAt === null) return due;
  const successor = { ms: Math.max(1, successorAt - clock.realNow), summary: 'start a new run' };
  return due && due.ms <= successor.ms ? due : successor;
}

async function continueAsNew(run: Run): Promise<never> {
  const { state, clock } = run;
  const next = makeContinueAsNewFunc<typeof subscription>({
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
