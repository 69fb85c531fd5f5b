import { ActivityFailure, log, patched, uuid4 } from '@temporalio/workflow';
import type { ChargeAttemptResult } from '../../activities/charging.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { newId } from '../../domain/ids.ts';
import { assertNever } from '../../domain/errors.ts';
import {
  applyOutcome,
  openAttempt,
  owe,
  postponed,
  resultOf,
  settleNow,
  withIntent,
} from '../../domain/subscription/apply-attempt.ts';
import { applyCheckoutExpiry, applyCooldownEnd } from '../../domain/subscription/apply-command.ts';
import type { Change, Effects } from '../../domain/subscription/change.ts';
import type { Command, CommandKind, CommandResult } from '../../domain/subscription/commands.ts';
import type { Step, Wait } from '../../domain/subscription/decide.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import type { Deliveries } from './deliveries.ts';
import type { Run } from './run.ts';

/** How long a step waits before it is tried again after its activity gave up. */
const BACKOFF_MS = 10_000;

/** What a recorded change came to for the command that caused it. */
export type Outcome =
  | { kind: 'done'; result: CommandResult | null }
  /** The row had moved on: the command has to be judged again. */
  | { kind: 'stale' }
  /** The database did not answer: done or not, the same command finds out. */
  | { kind: 'unavailable' };

/** The verbs of the workflow's story: each does one thing through activities and adopts the result. */
export class Steps {
  private readonly run: Run;
  private readonly deliveries: Deliveries;

  constructor(run: Run, deliveries: Deliveries) {
    this.run = run;
    this.deliveries = deliveries;
  }

  /** Does what `decide` named. */
  async take(step: Exclude<Step, Wait | { do: 'finish' }>): Promise<void> {
    const { run } = this;
    const { now, realNow } = run.clock;
    switch (step.do) {
      case 'settleAttempt':
        await this.charge(run.state, null);
        return;
      case 'expireCheckout':
        await this.record(applyCheckoutExpiry(run.state, now), null);
        return;
      case 'chargeCycle': {
        const owing = owe(run.state, step.dueAt, newIntentId(realNow));
        await this.openAndCharge(
          openAttempt(owing, { trigger: 'scheduled', commandId: null, now, realNow }),
          null,
        );
        return;
      }
      case 'retryAutomatically':
        await this.openAndCharge(
          openAttempt(run.state, { trigger: 'automatic_retry', commandId: null, now, realNow }),
          null,
        );
        return;
      case 'liftCooldown':
        // Not a transition: nobody is told, and `validateCommand` compares instants anyway.
        run.adopt(applyCooldownEnd(run.state));
        return;
      default:
        assertNever(step);
    }
  }

  /** Records `change`; on success it is the state from here on. */
  async record(
    change: Change,
    command: { command: Command; result: CommandResult } | null,
  ): Promise<Outcome> {
    const { run } = this;
    run.isWriting = true;
    try {
      const recorded = await run.activities.record(
        `record ${change.state.log.at(-1)?.what ?? change.state.status}`,
        {
          change,
          ...this.identity(change.state, command?.command ?? null, command?.result ?? null),
        },
      );
      if (recorded.kind === 'recorded') {
        run.adopt(change.state);
        this.deliveries.request();
        return { kind: 'done', result: command?.result ?? null };
      }
      run.adopt(recorded.state);
      return recorded.kind === 'stale'
        ? { kind: 'stale' }
        : { kind: 'done', result: recorded.result };
    } catch (error) {
      this.doubtAfter(error);
      return { kind: 'unavailable' };
    } finally {
      run.isWriting = false;
    }
  }

  /** Opens an attempt (recorded with it, before anything is sent) and carries it to its outcome. */
  async openAndCharge(opening: Change, command: Command | null): Promise<Outcome> {
    const { state, effects } = opening;
    return this.charge(state, { ...this.identity(state, command, null), effects });
  }

  private async charge(
    state: SubscriptionState,
    opening: (ReturnType<Steps['identity']> & { effects: Effects }) | null,
  ): Promise<Outcome> {
    const { run } = this;
    const { now: nowAt, realNow: realNowAt } = run.clock;
    const { owed, openAttempt: attempt } = state;
    if (!owed || !attempt) throw new Error('no attempt is open');
    run.isWriting = true;
    try {
      const result = await run.activities.chargeAttempt(
        `${opening ? 'charge' : 'settle'} cycle ${owed.cycleNumber}, attempt ${attempt.attemptNumber} (${attempt.trigger})`,
        { state, opening, nowAt, realNowAt },
      );
      return this.adoptCharge(state, result, nowAt, realNowAt);
    } catch (error) {
      // It may have been recorded and sent, or not: the row tells.
      this.doubtAfter(error);
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
  ): Outcome {
    const { run } = this;
    const { openAttempt: attempt } = state;
    if (!attempt) throw new Error('no attempt is open');
    switch (result.kind) {
      case 'settled': {
        const known = withIntent(state, result.intentId);
        const after = applyOutcome(known, result.outcome, nowAt, realNowAt).state;
        run.adopt(after);
        this.deliveries.request();
        return { kind: 'done', result: resultOf(attempt, result.outcome, after) };
      }
      case 'pending':
        run.adopt({ ...state, openAttempt: postponed(attempt, realNowAt) });
        return { kind: 'done', result: null };
      case 'adopt':
        run.adopt(result.state);
        this.deliveries.request();
        return result.result ? { kind: 'done', result: result.result } : { kind: 'stale' };
      default:
        return assertNever(result);
    }
  }

  /** The test clock is at its target and nothing is left to do there. Said once a target. */
  async reportClockReached(): Promise<void> {
    const { run } = this;
    const reachedAt = run.clock.unreportedAt;
    if (reachedAt === null) return;
    const { merchantId, subscriptionId } = run.state;
    try {
      await run.activities.clockReached(`clock reached ${formatInstant(reachedAt)}`, {
        merchantId,
        subscriptionId,
        reachedAt,
      });
      run.clock.said(reachedAt);
    } catch (error) {
      this.backOffAfter(error);
    }
  }

  /**
   * After a doubt the row is the truth: goes on from it if it is further. A doubt that comes while it
   * is read stays. False when it could not be read; nothing may be done on top of the doubt then.
   */
  async resync(): Promise<boolean> {
    const { run } = this;
    const { merchantId, subscriptionId } = run.state;
    const isKept = run.isLocalFirst || patched('doubts-are-kept');
    if (isKept) run.needsResync = false;
    run.isWriting = true;
    try {
      const found = await run.activities.loadSubscription('read the row again', {
        merchantId,
        subscriptionId,
      });
      if (found.state.version > run.state.version) {
        run.adopt(found.state);
        this.deliveries.request();
      }
      if (found.isReviewDecided) run.adopt(settleNow(run.state, run.clock.realNow));
      if (!isKept) run.needsResync = false;
      return true;
    } catch (error) {
      run.needsResync = true;
      this.backOffAfter(error);
      return false;
    } finally {
      run.isWriting = false;
    }
  }

  /** An activity gave up after it may have recorded something. */
  private doubtAfter(error: unknown): void {
    this.backOffAfter(error);
    this.run.needsResync = true;
  }

  /** Activities may give up; anything else is a bug, which fails the task and waits for a fix. */
  backOffAfter(error: unknown): void {
    if (!(error instanceof ActivityFailure)) throw error;
    this.run.backoffUntilAt = this.run.clock.realNow + BACKOFF_MS;
    log.warn('an activity gave up, trying again soon', {
      activity: error.activityType,
      reason: error.cause?.message ?? error.message,
    });
  }

  private identity(
    state: SubscriptionState,
    command: Command | null,
    result: CommandResult | null,
  ): {
    transitionId: string;
    command: { commandId: string; kind: CommandKind; result: CommandResult | null } | null;
    nowAt: number;
  } {
    return {
      transitionId: command?.commandId ?? `${state.subscriptionId}:${state.version}`,
      command: command && { commandId: command.commandId, kind: command.kind, result },
      nowAt: this.run.clock.now,
    };
  }
}

/** Deterministic on replay: both the instant and the bytes are the workflow's. */
function newIntentId(atMs: number): string {
  const bytes = uuid4()
    .replaceAll('-', '')
    .match(/../g)
    ?.map((hex) => Number.parseInt(hex, 16));
  return newId('in', atMs, (count) => Uint8Array.from(bytes ?? []).slice(0, count));
}
