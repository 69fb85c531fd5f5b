import { allHandlersFinished } from '@temporalio/workflow';
import { decide } from '../../domain/subscription/decide.ts';
import type { Step } from '../../domain/subscription/decide.ts';
import type { Facts } from './plan.ts';
import type { Run } from './run.ts';
import { hasRoom, successorDueAt } from './successor.ts';

/** The facts of a run. Each getter computes its fact at every read. */
export class RunFacts implements Facts {
  private readonly run: Run;

  constructor(run: Run) {
    this.run = run;
  }

  get needsResync(): boolean {
    return this.run.needsResync;
  }

  get isBackingOff(): boolean {
    return this.run.clock.realNow < this.run.backoffUntilAt;
  }

  get hasCommand(): boolean {
    return !this.run.inbox.isEmpty;
  }

  get isCommandAwaited(): boolean {
    return this.run.inbox.isAwaited;
  }

  get isCommandAfterAdvance(): boolean {
    const { inbox, clock } = this.run;
    return inbox.firstAfterAdvanceTo !== null && clock.now < inbox.firstAfterAdvanceTo;
  }

  get step(): Step {
    const { state, clock, isLookupWanted } = this.run;
    if (state.openAttempt && isLookupWanted) return { do: 'settleAttempt' };
    return decide(state, clock.now, clock.realNow);
  }

  get testClock(): Facts['testClock'] {
    const { clock } = this.run;
    if (!clock.isTestClock) return null;
    if (clock.isBehind) return 'behind its target';
    return clock.unreportedAt === null ? 'reported' : 'at its target';
  }

  get hasRoom(): boolean {
    return hasRoom();
  }

  get isDrained(): boolean {
    return allHandlersFinished();
  }

  get isSuccessorDue(): boolean {
    const { run } = this;
    const dueAt = successorDueAt(run);
    return dueAt !== null && run.clock.realNow >= dueAt;
  }
}
