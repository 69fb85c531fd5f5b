import type { Step, Wait } from '../../domain/subscription/decide.ts';

/** The facts from which `plan` decides what a run does next. */
export interface Facts {
  /** True if the database may hold a later state than the run. */
  readonly needsResync: boolean;
  /** True if an activity has used up its retries, and the backoff after it is not over. */
  readonly isBackingOff: boolean;
  readonly hasCommand: boolean;
  /** True if a caller waits for the answer of a command. */
  readonly isCommandAwaited: boolean;
  /** True if the oldest command arrived after an advance of the test clock, and the clock has not reached the target. */
  readonly isCommandAfterAdvance: boolean;
  /** The next step of the billing schedule, from `decide`. */
  readonly step: Step;
  /** Null without a test clock. `reported`: the database knows that the clock is at its target. */
  readonly testClock: 'behind its target' | 'at its target' | 'reported' | null;
  /** False if the history is so long that the run must continue as new before it sleeps. */
  readonly hasRoom: boolean;
  /** True if no handler is in progress. */
  readonly isDrained: boolean;
  /** True if the run should continue as new now, provided that it is idle. */
  readonly isSuccessorDue: boolean;
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
