import { expect } from 'vitest';
import { limitReached, limitRefusal } from '../../domain/card-limits.ts';
import type { CardLimits, ReachedLimit } from '../../domain/card-limits.ts';
import type { RetryAdvice } from '../../domain/declines.ts';
import type { NoticeRules } from '../../domain/notice-rules.ts';
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
import { applyCardLimit } from '../../domain/subscription/notes.ts';
import { planNotices } from '../../domain/subscription/plan-notices.ts';
import type { AttemptOutcome } from '../../domain/subscription/apply-attempt.ts';
import type { Change } from '../../domain/subscription/change.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { decide, isChargeStep } from '../../domain/subscription/decide.ts';
import { upcomingCharges } from '../../domain/subscription/upcoming.ts';
import { validateCommand } from '../../domain/subscription/validate-command.ts';
import type { Decision } from '../../domain/subscription/validate-command.ts';
import { describe as inWords } from '../../domain/subscription/describe.ts';
import { textOf } from '../../domain/subscription/entries.ts';
import type { Entry } from '../../domain/subscription/entries.ts';
import { newSubscription, nextPaymentAt } from '../../domain/subscription/state.ts';
import type { OpenAttempt, OwedCycle, SubscriptionState } from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';
import type { RecordedCharge } from '../../cli/verify/ledger-check.ts';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
export const TOKEN = { paymentToken: 'ptk', checkoutSessionId: 'cs' };

export const at = (iso: string): number => Date.parse(iso);

/** The instant as ISO text without zeros at its end: `2026-02-10`, `2026-02-10T04:00`. */
export const iso = (instant: number | null): string | null =>
  instant === null
    ? null
    : new Date(instant)
        .toISOString()
        .replace(/(:00)?\.000Z$/, '')
        .replace(/T00:00$/, '');

/** The gateway's answer to one charge or look-up. */
export type Reply =
  | { kind: 'succeeded'; byPerson?: true }
  | {
      kind: 'declined';
      code: string;
      gatewayCode?: string;
      networkCode?: string;
      advice?: RetryAdvice;
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

export const declined = (code = 'card_declined') => ({ kind: 'declined', code }) as const;
export const declines = (count: number) => Array.from({ length: count }, () => declined());
export const UNKNOWN = { kind: 'unknown' } as const;

/** The refusal of a command. */
export const refused = (message: string, code = 'operation_not_allowed') => ({
  ok: false,
  code,
  message,
});

export type CommandFields<K extends Command['kind']> = Omit<
  Extract<Command, { kind: K }>,
  'kind' | 'commandId' | 'actor'
>;

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
  readonly entries: Entry[];
  /** The rows of the attempts, as they were opened. */
  readonly opened: RecordedCharge[] = [];
  /** The limits of the card, and its unpaid attempts, latest first, also of other subscriptions. Default: no limits. */
  card: { limits: CardLimits; attemptsAt: number[] } | null = null;
  /** Default: no notices. */
  noticeRules: NoticeRules = [];
  /** When the present card expires. Default: not before any charge. */
  cardExpiresAt: number | null = null;
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
      jitter: { jitterMs },
    });
    this.statuses.push(this.state.status);
    this.entries = [this.state.latest];
  }

  command<K extends Command['kind']>(
    kind: K,
    fields: CommandFields<K>,
  ): { decision: Decision; result: CommandResult | null } {
    this.commands += 1;
    const command = { ...fields, kind, commandId: `cmd_${this.commands}` } as Command;
    const decision = validateCommand(this.state, command, this.now);
    if (!decision.ok) return { decision, result: null };
    const paymentMethodId = carriesToken(command) ? `pmt_${command.commandId}` : null;
    const action = actionForCommand(this.state, command, this.time, paymentMethodId);
    if (this.card && paymentMethodId !== null) this.card = { ...this.card, attemptsAt: [] };
    const limit = this.limitOf(action);
    if (limit) return { decision: { ...limitRefusal(limit), ok: false }, result: null };
    return { decision, result: this.act(action) };
  }

  private limitOf(action: Action): ReachedLimit | null {
    if (!this.card || action.do === 'record') return null;
    const { attemptsAt: declinedAt, limits } = this.card;
    return limitReached({ declinedAt, undecided: 0 }, limits, this.now);
  }

  /** Completes the checkout: pays the first cycle, or starts the trial. */
  pay(): CommandResult | null {
    return this.command('completeCheckout', {
      paymentToken: `ptk_${this.commands}`,
      checkoutSessionId: 'cs_1',
    }).result;
  }

  /** Adds the gateway's answers to the next charges and look-ups. */
  gives(...replies: Reply[]): this {
    this.replies.push(...replies);
    return this;
  }

  pause = (resumeAt?: string) =>
    this.command('pause', resumeAt === undefined ? {} : { resumeAt: at(resumeAt) });

  unpause = (date: string) => this.command('unpause', { newNextPaymentAt: at(date) });

  edit = (date: string, fields: CommandFields<'edit'> = {}) =>
    this.command('edit', { newNextPaymentAt: at(date), ...fields });

  retry = () => this.command('manualRetry', {});

  newCard = () => this.command('replacePaymentMethod', TOKEN);

  cancel = () => this.command('cancel', { reason: 'cancelled' });

  cancelAtPeriodEnd = () => this.command('cancel', { reason: 'cancelled', atPeriodEnd: true });

  resume = () => this.command('resume', {});

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
    if (step.do === 'liftCooldown') this.state = { ...this.state, cooldownUntilAt: null };
    else if (step.do === 'settleAttempt') this.settle(false);
    else {
      const action = actionForStep(this.state, step, this.time);
      const limit = this.limitOf(action);
      if (limit && isChargeStep(step)) {
        this.adopt(applyCardLimit(this.state, step, limit, this.now));
      } else this.act(action);
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
    if (isNew && answer.kind !== 'succeeded') this.card?.attemptsAt.unshift(this.now);
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
    const { owed, openAttempt } = change.state;
    if (this.state.openAttempt === null && owed && openAttempt) {
      const { intentId, amountMinor, dueAt } = owed;
      const { attemptNumber, trigger, cause, startedAt: createdAt } = openAttempt;
      this.opened.push({ intentId, attemptNumber, trigger, amountMinor, dueAt, cause, createdAt });
    }
    const { noticeRules, cardExpiresAt, now } = this;
    const formerAmountMinor = this.state.terms.amountMinor;
    const facts = { cardExpiresAt, formerAmountMinor };
    const planned = planNotices(change.state, noticeRules, now, facts);
    this.state = { ...change.state, ...planned };
    const { latest, version } = change.state;
    if (latest.version === version) this.entries.push(latest);
    this.events.push(...change.events.map((event) => event.type));
  }

  /** Instant, cycle and trigger of each charge, without the triggers `checkout` and `scheduled`. */
  get sent(): string {
    return this.sends
      .map(({ at: sentAt, cycleNumber, trigger }) =>
        [
          iso(sentAt),
          cycleNumber,
          ...(/^(checkout|scheduled)$/.test(trigger) ? [] : [trigger]),
        ].join(' '),
      )
      .join(', ');
  }

  /** The timeline. */
  get log() {
    const { terms } = this.state;
    return this.entries.map((entry) => ({
      at: entry.at,
      ...textOf(entry, terms),
      actor: entry.actor,
    }));
  }

  /** The events, without the prefix `subscription.`. */
  get news(): string {
    return this.events.map((type) => type.replace('subscription.', '')).join(', ');
  }

  get path(): string {
    return this.statuses.join(' > ');
  }

  get nextAt(): string | null {
    return iso(nextPaymentAt(this.state));
  }

  get paidUntil(): string | null {
    return iso(this.state.currentPeriodEndAt);
  }

  /** Instant, cycle and amount of each of the next upcoming charges. */
  upcoming(count = 10): string {
    return upcomingCharges(this.state, count, this.now)
      .map((charge) => `${iso(charge.at)} ${charge.cycleNumber} ${charge.amountMinor}`)
      .join(', ');
  }

  get words(): string {
    const { entries } = this;
    return inWords(this.state, this.now, {
      productName: null,
      refused: null,
      heldBecause: null,
      entries,
    });
  }
}

/** A subscription of 19.99 USD a month, three cycles, with these changes, whose checkout was completed at `instant`. */
export function subscribed(instant: string, ...rest: RestOf<typeof Simulation>): Simulation {
  const simulation = new Simulation(instant, ...rest);
  simulation.pay();
  simulation.events.length = 0;
  return simulation;
}

type RestOf<Class> = Class extends new (at: string, ...rest: infer Rest) => unknown ? Rest : never;

/** Runs five more years and expects no further charge and no further event. */
export function expectNothingFurther(simulation: Simulation): void {
  const before = { sends: simulation.sends.length, events: simulation.events.length };
  simulation.runTo(simulation.now + 5 * 365 * DAY);
  expect({ sends: simulation.sends.length, events: simulation.events.length }).toEqual(before);
}
