import type { Step, Wait } from '../../domain/subscription/decide.ts';

/** Everything that decides what a run does next. Read in the order of the priorities, each when needed. */
export interface Facts {
  /** The database may hold a later state than the run. */
  readonly needsResync: boolean;
  /** An activity gave up less than 10 s ago. */
  readonly isBackingOff: boolean;
  readonly hasCommand: boolean;
  /** A caller waits for the answer of a command. */
  readonly isCommandAwaited: boolean;
  /** What the rules name as next. */
  readonly step: Step;
  /** Where the subscription's test clock is; null in real time. */
  readonly testClock: 'behind its target' | 'at its target' | 'reported' | null;
  /** The history is short enough for more work on the run's own account. */
  readonly hasRoom: boolean;
  /** No handler and no delivery is under way. */
  readonly isDrained: boolean;
  /** The run is idle, and a successor should take over now. */
  readonly isSuccessorDue: boolean;
}

export type Plan =
  | { kind: 'resync' | 'command' | 'reportClock' | 'drain' | 'finish' | 'continueAsNew' }
  | { kind: 'advanceClock'; until: number | null }
  | { kind: 'step'; step: Exclude<Step, Wait | { do: 'finish' }> }
  | { kind: 'sleep'; step: Step };

/**
 * What the run does next. Pure. The first that applies:
 *
 * 1. `resync`: read the row before anything is decided by a state that may be old.
 * 2. `command`: carry out the oldest command. During a backoff only if a caller waits for it.
 * 3. `advanceClock`: move the test clock to the next due instant, or to its target.
 * 4. `step`: do the step of the billing schedule that is due now. Not during a backoff.
 * 5. `reportClock`: record that the test clock is at its target.
 * 6. `drain`: wait until no handler and no delivery is under way.
 * 7. `finish`: end the run of a subscription that is over.
 * 8. `continueAsNew`: hand over to a new run.
 * 9. `sleep`: until something is due or a message arrives.
 */
export function plan(facts: Facts): Plan {
  const interruption = interruptionOf(facts);
  if (interruption) return interruption;
  const { step } = facts;
  const isIdle = !facts.needsResync && !facts.isBackingOff;
  if (step.do !== 'wait' && step.do !== 'finish' && !facts.isBackingOff) {
    return { kind: 'step', step };
  }
  if (isClockMovable(facts, step) && facts.testClock === 'at its target') {
    return { kind: 'reportClock' };
  }
  if (!facts.isDrained) return { kind: 'drain' };
  if (step.do === 'finish' && !facts.hasCommand && !facts.needsResync) return { kind: 'finish' };
  const isOver = (isIdle && facts.isSuccessorDue) || !facts.hasRoom;
  if (isOver && !facts.hasCommand) return { kind: 'continueAsNew' };
  return { kind: 'sleep', step };
}

/** Priorities 1 to 3: the work that also ends a wait. Null when there is none. */
export function interruptionOf(facts: Facts): Plan | null {
  const mayWork = facts.isCommandAwaited || !facts.isBackingOff;
  if (mayWork && facts.needsResync) return { kind: 'resync' };
  if (mayWork && facts.hasCommand) return { kind: 'command' };
  const { step } = facts;
  if (isClockMovable(facts, step) && facts.testClock === 'behind its target') {
    return { kind: 'advanceClock', until: step.until };
  }
  return null;
}

/** A test clock stands still during a resync, a backoff, and while a gateway is asked in real time. */
function isClockMovable(facts: Facts, step: Step): step is Wait {
  const mayMove =
    facts.testClock !== null && facts.hasRoom && !facts.needsResync && !facts.isBackingOff;
  return mayMove && step.do === 'wait' && step.time === 'own';
}
