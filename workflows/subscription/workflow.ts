import {
  ActivityFailure,
  CancellationScope,
  condition,
  log,
  makeContinueAsNewFunc,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { Step, Wait } from '../../domain/subscription/decide.ts';
import { describeWait } from '../../domain/subscription/describe.ts';
import { WORKFLOW_TASK_TIMEOUT } from '../messages.ts';
import { registerHandlers, takeFirstCommand } from './handlers.ts';
import {
  attributesOf,
  fixedAttributesOf,
  memoOf,
  productNameOf,
  receiptIdIn,
  resultOf,
} from './messages.ts';
import type { SubscriptionInput, SubscriptionResult } from './messages.ts';
import { Run } from './run.ts';
import type { Facts } from './run.ts';
import { Steps } from './steps.ts';

/** If a run lasted less than this time in ms, Temporal delays its successor. */
const RUN_AGE_MS_MIN = 1_000;

/**
 * Runs one subscription from its creation to its end. Handlers only put commands into an inbox; only this loop changes
 * the subscription, as `plan` decides, one change at a time.
 */
export async function subscription(input: SubscriptionInput): Promise<SubscriptionResult> {
  const run = new Run(input);
  registerHandlers(run);
  const steps = new Steps(run);

  return CancellationScope.nonCancellable(async () => {
    if (input.deliver) await deliverEarlierEvents(run);
    for (;;) {
      const next = plan(run);
      switch (next.kind) {
        case 'resync':
          await steps.resync();
          break;
        case 'command':
          await takeFirstCommand(run, steps);
          break;
        case 'advanceClock':
          run.clock.stepTo(next.until);
          break;
        case 'step':
          await steps.take(next.step);
          break;
        case 'reportClock':
          await steps.reportClockReached();
          break;
        case 'drain':
          await condition(() => interruptionOf(run) !== null || run.isDrained);
          break;
        case 'finish':
          upsertSearchAttributes(attributesOf(run.state));
          return resultOf(run.state);
        case 'continueAsNew':
          await handOver(run);
          break;
        case 'sleep':
          await sleep(run, next.step);
      }
    }
  });
}

export type Plan =
  | { kind: 'resync' | 'command' | 'reportClock' | 'drain' | 'finish' | 'continueAsNew' }
  | { kind: 'advanceClock'; until: number | null }
  | { kind: 'step'; step: Exclude<Step, Wait | { do: 'finish' }> }
  | { kind: 'sleep'; step: Step };

/**
 * Returns what the run does next: the first item that applies. During a backoff only items 1 and 2 of 1 to 5 apply, and
 * only if a caller waits.
 *
 * 1. `resync`: read the row.
 * 2. `command`: execute the oldest command. If it arrived after an advance of the test clock, 3 and 4 come first.
 * 3. `advanceClock`: move the test clock to the next due instant, or to its target.
 * 4. `step`: execute the due step.
 * 5. `reportClock`: record that the test clock is at its target.
 * 6. `drain`: wait for the handlers.
 * 7. `finish`: complete the workflow of an ENDED subscription.
 * 8. `continueAsNew`: start a run with a short history.
 * 9. `sleep`: until a step is due or a message arrives.
 */
export function plan(facts: Facts): Plan {
  const interruption = interruptionOf(facts);
  if (interruption) return interruption;
  const due = dueStep(facts);
  if (due) return due;
  const { step } = facts;
  const isIdle = !facts.needsResync && !facts.isBackingOff;
  if (isClockMovable(facts, step) && facts.testClock === 'at its target') {
    return { kind: 'reportClock' };
  }
  if (!facts.isDrained) return { kind: 'drain' };
  if (step.do === 'finish' && !facts.hasCommand && !facts.needsResync) return { kind: 'finish' };
  const isOver = (isIdle && facts.isSuccessorDue) || !facts.hasRoom;
  if (isOver && !facts.hasCommand) return { kind: 'continueAsNew' };
  return { kind: 'sleep', step };
}

/** Returns the work of items 1 to 3, which also interrupts a sleep; null if none of these items applies. */
export function interruptionOf(facts: Facts): Plan | null {
  const mayWork = facts.isCommandAwaited || !facts.isBackingOff;
  if (mayWork && facts.needsResync) return { kind: 'resync' };
  if (mayWork && facts.hasCommand) {
    const earlier = facts.isCommandAfterAdvance ? (dueStep(facts) ?? advance(facts)) : null;
    return earlier ?? { kind: 'command' };
  }
  return advance(facts);
}

function dueStep({ step, isBackingOff }: Facts): Plan | null {
  return step.do === 'wait' || step.do === 'finish' || isBackingOff ? null : { kind: 'step', step };
}

function advance(facts: Facts): Plan | null {
  const { step, testClock } = facts;
  return isClockMovable(facts, step) && testClock === 'behind its target'
    ? { kind: 'advanceClock', until: step.until }
    : null;
}

/** The next step must wait for the subscription's own time, not for a look-up at the gateway. */
function isClockMovable(facts: Facts, step: Step): step is Wait {
  const mayMove =
    facts.testClock !== null && facts.hasRoom && !facts.needsResync && !facts.isBackingOff;
  return mayMove && step.do === 'wait' && step.time === 'own';
}

/** Starts the delivery of events from before the workflow. If this fails, the maintenance sweep delivers them. */
async function deliverEarlierEvents({ activities, state }: Run): Promise<void> {
  const { merchantId, subscriptionId: streamId } = state;
  try {
    await activities.wakeStream('begin to deliver', { merchantId, streamId });
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    log.warn('first delivery gave up', { reason: error.cause?.message ?? error.message });
  }
}

/** Until `step` is due, the backoff is over, a message brings work, or the run must continue as new. */
async function sleep(run: Run, step: Step): Promise<void> {
  const { clock } = run;
  // Messages may make the history too long. During a backoff a full run sleeps on, because a command in the inbox would
  // prevent continue-as-new, and the loop would run without a pause.
  const isFull = (): boolean => !run.hasRoom && !run.isBackingOff;
  const isOver = (): boolean => interruptionOf(run) !== null || isFull();
  // The next run writes them at its start.
  if (!run.isSuccessorDue) run.publishAttributes();
  const backoffMs = run.backoffUntilAt - clock.realNow;
  if (backoffMs > 0 || step.do !== 'wait') {
    await condition(isOver, Math.max(1, backoffMs), { summary: 'try again' });
    return;
  }
  const wait = timerFor(run, step);
  if (wait) await condition(isOver, wait.ms, { summary: wait.summary });
  else await condition(isOver);
}

function timerFor(run: Run, step: Wait): { ms: number; summary: string } | null {
  const { clock } = run;
  const isOnTestClock = clock.isTestClock && step.time === 'own';
  const now = step.time === 'real' ? clock.realNow : clock.now;
  return step.until === null || isOnTestClock
    ? null
    : { ms: step.until - now, summary: describeWait({ ...step, until: step.until }) };
}

/**
 * Continues as new, unless a message brings work. A run younger than 1 s waits first, because Temporal would delay its
 * successor, which would get no messages meanwhile.
 */
async function handOver(run: Run): Promise<void> {
  const ageMs = run.clock.realNow - workflowInfo().runStartTime.getTime();
  if (ageMs < RUN_AGE_MS_MIN) {
    const isWoken = await condition(() => interruptionOf(run) !== null, RUN_AGE_MS_MIN - ageMs, {
      summary: 'let the run be a second old',
    });
    if (isWoken) return;
  }
  await continueAsNew(run);
}

async function continueAsNew(run: Run): Promise<never> {
  const { state, entries, clock } = run;
  const isRecheckWanted = run.isRecheckWanted || run.isLookupWanted;
  const next = makeContinueAsNewFunc<(input: SubscriptionInput) => Promise<SubscriptionResult>>({
    typedSearchAttributes: [
      ...attributesOf(state),
      ...fixedAttributesOf(receiptIdIn(workflowInfo().typedSearchAttributes)),
    ],
    memo: memoOf(productNameOf(workflowInfo())),
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
  });
  return next({
    state,
    entries,
    clock: clock.snapshot,
    deliver: false,
    needsResync: run.needsResync || isRecheckWanted,
    ...(isRecheckWanted && { isRecheckWanted }),
  });
}
