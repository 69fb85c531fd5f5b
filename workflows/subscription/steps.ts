import { ActivityFailure, ApplicationFailure, log } from '@temporalio/workflow';
import type { ChargeAttemptInput, ChargeAttemptResult } from '../../activities/subscription.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { assertNever, UNREADABLE_STATE } from '../../domain/errors.ts';
import type { RefusalReason } from '../../domain/errors.ts';
import {
  applyOutcome,
  isEarlyLookup,
  postponed,
  resultOf,
  settleNow,
} from '../../domain/subscription/apply-attempt.ts';
import { actionForStep } from '../../domain/subscription/actions.ts';
import type { Action } from '../../domain/subscription/actions.ts';
import type { Change } from '../../domain/subscription/change.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import type { Step, Wait } from '../../domain/subscription/decide.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import { stateDifferences } from '../../domain/subscription/ledger.ts';
import { knownUntil } from '../../domain/subscription/state.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import type { Run } from './run.ts';

export type StepResult =
  | { kind: 'done'; result: CommandResult | null }
  | { kind: 'refused'; refusal: RefusalReason }
  /** The row held a later state, which the run has adopted. The command must be validated again. */
  | { kind: 'stale' }
  /** The change may or may not be recorded. A repeat of the command gets the result. */
  | { kind: 'unavailable' };

/** The operations of a run on its subscription. Most run an activity and then adopt the state that is in the row. */
export class Steps {
  private readonly run: Run;

  constructor(run: Run) {
    this.run = run;
  }

  async take(step: Exclude<Step, Wait | { do: 'finish' }>): Promise<void> {
    const { run } = this;
    switch (step.do) {
      case 'settleAttempt':
        await this.charge(run.state, null);
        return;
      case 'liftCooldown':
        // The row may keep a cooldown that is over, because `validateCommand` compares the cooldown's end with
        // the present time.
        run.adopt({ ...run.state, cooldownUntilAt: null });
        return;
      case 'expireCheckout':
      case 'endPeriod':
      case 'endPause':
      case 'giveNotice':
      case 'chargeCycle':
      case 'retryAutomatically': {
        await this.act(actionForStep(run.state, step, run.clock), null);
        return;
      }
      default:
        assertNever(step);
    }
  }

  /** Executes `action`: charges the attempt or records the change. `command` is null for a due step. */
  act(action: Action, command: Command | null): Promise<StepResult> {
    const { change } = action;
    return action.do === 'charge'
      ? this.charge(change.state, {
          ...this.identity(change.state, command, null),
          effects: change.effects,
        })
      : this.record(change, command, action.result);
  }

  private async record(
    change: Change,
    command: Command | null,
    result: CommandResult | null,
  ): Promise<StepResult> {
    const { run } = this;
    run.isWriting = true;
    try {
      const { latest, terms } = change.state;
      const recorded = await run.activities.record(`record ${textOf(latest, terms).what}`, {
        change,
        ...this.identity(change.state, command, result),
        realNowAt: run.clock.realNow,
      });
      run.noteProgress();
      if (recorded.kind === 'recorded') {
        run.adopt({ ...change.state, ...recorded.place });
        return { kind: 'done', result };
      }
      if (!this.adoptRow(recorded.state)) return { kind: 'unavailable' };
      return recorded.kind === 'stale'
        ? { kind: 'stale' }
        : { kind: 'done', result: recorded.result };
    } catch (error) {
      this.resyncAfter(error);
      return { kind: 'unavailable' };
    } finally {
      run.isWriting = false;
    }
  }

  /** Charges the open attempt of `state`. `opening` opens it, and is recorded before the first send. */
  private async charge(
    state: SubscriptionState,
    opening: ChargeAttemptInput['opening'],
  ): Promise<StepResult> {
    const { run } = this;
    const { now: nowAt, realNow: realNowAt } = run.clock;
    const { owed, openAttempt: attempt } = state;
    if (!owed || !attempt) throw new Error('no attempt is open');
    run.isWriting = true;
    try {
      const result = await run.activities.chargeAttempt(
        `${opening ? 'charge' : 'settle'} cycle ${owed.cycleNumber}, attempt ${attempt.attemptNumber} (${attempt.trigger})`,
        { state, opening, nowAt, realNowAt },
        opening === null,
      );
      return this.adoptCharge(state, result, nowAt, realNowAt);
    } catch (error) {
      // The activity may have recorded and sent the attempt. The resync reads the row to find out.
      this.resyncAfter(error);
      return { kind: 'unavailable' };
    } finally {
      run.isWriting = false;
    }
  }

  private adoptCharge(
    state: SubscriptionState,
    result: ChargeAttemptResult,
    nowAt: number,
    realNowAt: number,
  ): StepResult {
    const { run } = this;
    const { openAttempt: attempt } = state;
    if (!attempt) throw new Error('no attempt is open');
    run.noteProgress();
    run.isLookupWanted = false;
    switch (result.kind) {
      case 'settled': {
        const applied = applyOutcome(state, result.outcome, nowAt, realNowAt).state;
        const after = { ...applied, ...result.place };
        // The opening of a manual retry has an entry of its own.
        if (state.latest.version === state.version) run.adopt(state);
        run.adopt(after);
        return { kind: 'done', result: resultOf(attempt, result.outcome, after) };
      }
      case 'pending':
        run.adopt({ ...state, openAttempt: postponed(state, attempt, realNowAt) });
        return { kind: 'done', result: null };
      case 'refused':
        return result;
      case 'adopt':
        if (!this.adoptRow(result.state)) return { kind: 'unavailable' };
        return result.result ? { kind: 'done', result: result.result } : { kind: 'stale' };
      default:
        return assertNever(result);
    }
  }

  /**
   * Records each reached target of the test clock once. If the row has another version, adopts the row, because steps
   * may be due before the target.
   */
  async reportClockReached(): Promise<void> {
    const { run } = this;
    const reachedAt = run.clock.unreportedAt;
    if (reachedAt === null) return;
    const { merchantId, subscriptionId, version } = run.state;
    try {
      const row = await run.activities.clockReached(`clock reached ${formatInstant(reachedAt)}`, {
        merchantId,
        subscriptionId,
        version,
        reachedAt,
      });
      run.noteProgress();
      if (row) this.adoptRow(row);
      else run.clock.reported(reachedAt);
    } catch (error) {
      this.backOffAfter(error);
    }
  }

  /**
   * Reads the row again and adopts a newer state. After a recheck or a decided review, makes the open attempt due. If
   * a resync is requested meanwhile, another read follows.
   */
  async resync(): Promise<void> {
    const { run } = this;
    const { merchantId, subscriptionId } = run.state;
    const { isRecheckWanted } = run;
    run.isRecheckWanted = false;
    run.needsResync = false;
    run.isWriting = true;
    try {
      const { version } = run.state;
      const found = await run.activities.loadSubscription('read the row again', {
        merchantId,
        subscriptionId,
        version,
      });
      if (!this.adoptRow(found.state, found.entries)) {
        run.hold(
          'the database is older than this run',
          'See `npm run verify` and docs/operations.md, "After the database was restored"',
        );
        run.answerUnavailable();
        return;
      }
      run.release();
      // After a restore, the row's time may be earlier than the run's, which then reports its own again.
      if (found.clock) run.clock.reported(found.clock.reachedAt);
      if (found.isReviewDecided) run.adopt(settleNow(run.state, run.clock.realNow));
      else if (isRecheckWanted) this.lookUpNow();
    } catch (error) {
      run.needsResync = true;
      run.isRecheckWanted ||= isRecheckWanted;
      this.backOffAfter(error);
      run.answerUnavailable();
    } finally {
      run.isWriting = false;
    }
  }

  /** Requests a look-up of the open attempt, unless a look-up is due anyway. */
  private lookUpNow(): void {
    const { openAttempt } = this.run.state;
    if (!openAttempt || !isEarlyLookup(openAttempt, this.run.clock.realNow)) return;
    this.run.isLookupWanted = true;
  }

  /**
   * Adopts the row's state if it is newer, or differs at the same version because new rules have replayed the run.
   * Returns false if the row is older: the database was restored.
   */
  adoptRow(state: SubscriptionState, entries?: readonly Entry[]): boolean {
    const { run } = this;
    if (state.version < run.state.version) {
      run.needsResync = true;
      return false;
    }
    const isSame = state.version === run.state.version;
    const differences = isSame ? stateDifferences(run.state, state) : [];
    if (differences.length > 0) {
      log.error('adopts its row of the same version', {
        fields: differences.map(({ what }) => what),
      });
    }
    if (!isSame || differences.length > 0) {
      run.clock.moveBack(knownUntil(state));
      run.adopt(state, entries);
    }
    return true;
  }

  private resyncAfter(error: unknown): void {
    this.backOffAfter(error);
    this.run.needsResync = true;
  }

  /**
   * Backs off, or holds the run if its row cannot be read. Rethrows an error that is not an activity failure: it is a
   * bug and fails the workflow task.
   */
  backOffAfter(error: unknown): void {
    if (!(error instanceof ActivityFailure)) throw error;
    if (error.cause instanceof ApplicationFailure && error.cause.type === UNREADABLE_STATE) {
      this.run.hold(error.cause.message);
      return;
    }
    this.run.backOff();
    log.warn('an activity gave up, trying again soon', {
      activity: error.activityType,
      reason: error.cause?.message ?? error.message,
    });
  }

  private identity(
    state: SubscriptionState,
    command: Command | null,
    result: CommandResult | null,
  ): Omit<NonNullable<ChargeAttemptInput['opening']>, 'effects'> {
    return {
      transitionId: command?.commandId ?? `${state.subscriptionId}:${state.version}`,
      command: command && { commandId: command.commandId, kind: command.kind, result },
      nowAt: this.run.clock.now,
      beforeAt: knownUntil(this.run.state),
    };
  }
}
