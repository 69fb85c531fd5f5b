import { expect } from 'vitest';
import { cycleAt } from '../../domain/calendar.ts';
import { chargeKey } from '../../domain/payment-intent.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import {
  actionForCommand,
  actionForStep,
  carriesToken,
} from '../../domain/subscription/actions.ts';
import type { Action, ActionTime } from '../../domain/subscription/actions.ts';
import { applyOutcome, postponed, resultOf } from '../../domain/subscription/apply-attempt.ts';
import type { AttemptOutcome } from '../../domain/subscription/apply-attempt.ts';
import { applyCooldownEnd } from '../../domain/subscription/apply-command.ts';
import type { Change } from '../../domain/subscription/change.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { decide } from '../../domain/subscription/decide.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import type { Decision } from '../../domain/subscription/validate-command.ts';
import { newSubscription } from '../../domain/subscription/state.ts';
import type {
  OpenAttempt,
  OwedCycle,
  SubscriptionState,
  Terms,
} from '../../domain/subscription/state.ts';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** The gateway's answer to one charge or look-up. */
export type Reply =
  | { kind: 'succeeded'; byPerson?: true }
  | {
      kind: 'declined';
      code: string;
      gatewayCode?: string;
      retry?: 'never';
      byPerson?: true;
      isWithdrawn?: true;
    }
  | { kind: 'unknown'; awaitsPayer?: true }
  | { kind: 'review'; reason: string };

/**
 * `nothing_new`: the look-up added nothing to an unknown outcome or a review. `gave_up`: the activity
 * failed without a result.
 */
export type Exchange = Reply | { kind: 'nothing_new' } | { kind: 'gave_up' };

export interface Send {
  key: string;
  amountMinor: number;
  cycleNumber: number;
  dueAt: number;
  at: number;
  trigger: string;
}

const DEFAULT_TERMS: Terms = {
  amountMinor: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 3,
  upfrontAmountMinor: null,
  trial: null,
};

/**
 * The loop of the subscription workflow without Temporal, with the domain functions of the workflow. The
 * clock of the loop jumps from one due instant to the next, and is also the real time.
 */
export class Simulation {
  state: SubscriptionState;
  now: number;
  readonly retryPlan: RetryPlan;
  /** The gateway's answers to the next charges and look-ups. After the last of these, all succeed. */
  readonly replies: Reply[] = [];
  readonly sends: Send[] = [];
  readonly events: string[] = [];
  readonly statuses: string[] = [];
  private commands = 0;

  constructor(
    at: string | number,
    terms: Partial<Terms> = {},
    retryPlan: RetryPlan = DEFAULT_RETRY_PLAN,
    jitterMs = 0,
  ) {
    this.now = typeof at === 'number' ? at : Date.parse(at);
    this.retryPlan = retryPlan;
    const all = { ...DEFAULT_TERMS, ...terms };
    this.state = newSubscription({
      subscriptionId: 'sub_1',
      merchantId: 'mer_1',
      customerId: 'cus_1',
      terms: all,
      createdAt: this.now,
      checkoutExpiresAt: this.now + DAY,
      testClockId: null,
      jitterMs,
    });
    this.statuses.push(this.state.status);
  }

  command<K extends Command['kind']>(
    kind: K,
    fields: Omit<Extract<Command, { kind: K }>, 'kind' | 'commandId' | 'actor'>,
  ): { decision: Decision; result: CommandResult | null } {
    this.commands += 1;
    const command = { ...fields, kind, commandId: `cmd_${this.commands}` } as Command;
    const decision = validateCommand(this.state, command, this.now);
    if (!decision.ok) return { decision, result: null };
    const paymentMethodId = carriesToken(command) ? `pmt_${command.commandId}` : null;
    const action = actionForCommand(this.state, command, this.time, paymentMethodId);
    return { decision, result: this.act(action) };
  }

  /** Completes the checkout: pays the first cycle, or starts the trial. */
  pay(): CommandResult | null {
    return this.command('completeCheckout', {
      paymentToken: `ptk_${this.commands}`,
      checkoutSessionId: 'cs_1',
    }).result;
  }

  /** Takes every step that is due up to `at`, at most 10,000 steps. */
  runTo(at: string | number): void {
    const target = typeof at === 'number' ? at : Date.parse(at);
    for (let steps = 0; steps < 10_000; steps += 1) {
      const step = decide(this.state, this.now, this.now);
      if (step.do === 'finish') break;
      if (step.do === 'wait') {
        if (step.until === null || step.until > target) break;
        this.now = Math.max(this.now, step.until);
        continue;
      }
      this.take(step);
    }
    this.now = Math.max(this.now, target);
  }

  protected take(step: Exclude<ReturnType<typeof decide>, { do: 'wait' | 'finish' }>): void {
    if (step.do === 'liftCooldown') this.state = applyCooldownEnd(this.state);
    else if (step.do === 'settleAttempt') this.settle(false);
    else {
      this.act(actionForStep(this.state, step, this.time));
    }
  }

  private get time(): ActionTime {
    return { now: this.now, realNow: this.now };
  }

  private act(action: Action): CommandResult | null {
    this.adopt(action.change);
    return action.do === 'charge' ? this.settle(true) : action.result;
  }

  /** Sends the open attempt to the gateway, or looks it up, and applies the outcome. */
  private settle(isNew: boolean): CommandResult | null {
    const { owed, openAttempt: attempt } = this.state;
    if (!owed || !attempt) throw new Error('nothing to settle');
    if (isNew) {
      this.sends.push({
        key: chargeKey(owed.intentId, attempt.attemptNumber),
        amountMinor: owed.amountMinor,
        cycleNumber: owed.cycleNumber,
        dueAt: owed.dueAt,
        at: this.now,
        trigger: attempt.trigger,
      });
    }
    const answer = this.askGateway(owed, attempt);
    if (answer.kind === 'gave_up') return null;
    if (answer.kind === 'nothing_new') {
      this.state = { ...this.state, openAttempt: postponed(this.state, attempt, this.now) };
      return null;
    }
    const outcome: AttemptOutcome =
      answer.kind === 'declined' ? { ...answer, retryPlan: this.retryPlan } : answer;
    const change = applyOutcome(this.state, outcome, this.now, this.now);
    this.adopt(change);
    return resultOf(attempt, outcome, change.state);
  }

  /**
   * Returns the next of the `replies` for the open attempt. If this reply adds nothing to an unknown outcome
   * or a review, returns `nothing_new`.
   */
  protected askGateway(_owed: OwedCycle, attempt: OpenAttempt): Exchange {
    const reply = this.replies.shift() ?? { kind: 'succeeded' };
    const isUnchanged =
      (reply.kind === 'unknown' && attempt.lookups > 0) ||
      (reply.kind === 'review' && attempt.reviewReason !== undefined);
    return isUnchanged ? { kind: 'nothing_new' } : reply;
  }

  protected adopt(change: Change): void {
    if (change.state.version !== this.state.version + 1) throw new Error('a version was skipped');
    if (change.state.status !== this.state.status) this.statuses.push(change.state.status);
    this.state = change.state;
    this.events.push(...change.events.map((event) => event.type));
  }

  /** The dates on which charges were sent, as ISO dates. */
  get sentOn(): string[] {
    return this.sends.map((send) => new Date(send.at).toISOString().slice(0, 10));
  }

  /** The calendar's date number `index`, counted from 0, in ISO format. */
  date(index: number): string {
    const { anchorAt, terms } = this.state;
    return new Date(
      cycleAt(anchorAt ?? 0, terms.interval, terms.intervalCount, index),
    ).toISOString();
  }
}

/** Runs five more years and expects no further charge and no further event. */
export function expectNothingFurther(simulation: Simulation): void {
  const before = { sends: simulation.sends.length, events: simulation.events.length };
  simulation.runTo(simulation.now + 5 * 365 * DAY);
  expect({ sends: simulation.sends.length, events: simulation.events.length }).toEqual(before);
}
