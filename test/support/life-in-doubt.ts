import { cycleAt } from '../../domain/calendar.ts';
import { isAskedLongEnough } from '../../domain/delays.ts';
import { chargeKey } from '../../domain/payment-intent.ts';
import type { AttemptState, AttemptTrigger } from '../../domain/payment-intent.ts';
import { isLastLateLook, lateLookDelayMs } from '../../domain/review.ts';
import { settleNow } from '../../domain/subscription/apply-attempt.ts';
import { applyLateCharge } from '../../domain/subscription/notes.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { decide } from '../../domain/subscription/decide.ts';
import type { Decision } from '../../domain/subscription/validate-command.ts';
import type { OpenAttempt, OwedCycle } from '../../domain/subscription/state.ts';
import type { SubscriptionStatus } from '../../domain/subscription/status.ts';
import { ModelGateway } from './model-gateway.ts';
import { DAY, HOUR, Simulation } from './simulation.ts';
import type { CommandFields, Exchange } from './simulation.ts';

/** When the worker crashes: before it sends the charge, or between the send and the record of the answer. */
export type Death = 'before_sending' | 'after_sending';

/** An operator's decision on an attempt in REVIEW. The decision `paid` needs a charge at the gateway. */
export type Finding = 'paid' | 'declined' | 'not_charged';

interface AttemptRow {
  key: string;
  cycleNumber: number;
  amountMinor: number;
  /** CREATED: opened, and not sent by any run. Only the model can tell this from SENDING. */
  state: AttemptState | 'CREATED';
  firstSentAt: number | null;
  /** The operator's decision in REVIEW; null without a decision. */
  finding: Finding | null;
  /** The payment method was replaced while the attempt was open. */
  hasNewerMethod: boolean;
  /** The subscription was paused while the attempt was open. */
  wasPaused: boolean;
}

/** The look-ups for a late charge of an attempt that was settled as not paid. */
interface LateChargeWatch {
  row: AttemptRow;
  looks: number;
  lookAt: number;
}

/** The two decline codes of the simulation that stop automatic retries: `HARD` and `ASKS_PAYER`. */
export const HARD = 'stolen_card';
export const ASKS_PAYER = 'authentication_required';
/** A present payer may take 20 min to confirm a charge. */
const CONFIRM_WITHIN_MS = 1_200_000;
/** The workflow's backoff after a failed activity. */
const BACKOFF_MS = 10_000;

/** The statuses in which an attempt may begin, by its trigger. */
const START_STATUSES: Partial<Record<AttemptTrigger, readonly SubscriptionStatus[]>> = {
  checkout: ['CREATED'],
  scheduled: ['TRIALING', 'ACTIVE'],
  automatic_retry: ['UNPAID'],
  manual_retry: ['UNPAID'],
  new_method: ['UNPAID'],
  authentication: ['UNPAID'],
};

/**
 * A simulation in which charges go through a {@link ModelGateway}, with faults of the network and deaths of
 * the worker. The simulation contains a small copy of the rules of `activities/` and `db/`: one row for each
 * key, a look-up before a resend, voiding after a cancel or a pause, REVIEW, and late-charge watches.
 *
 * Throws if the subscription breaks a rule. Derives the expected dates and amounts only from the accepted
 * commands.
 */
export class LifeInDoubt extends Simulation {
  readonly gateway = new ModelGateway();
  readonly rows = new Map<string, AttemptRow>();
  readonly deaths: Death[] = [];
  /** The amount of each cycle, by cycle number, as agreed on its due date. */
  readonly owedMinor = new Map<number, number>();
  cancelledAt: number | null = null;
  /** The number of times that each situation occurred. Several simulations may share this map. */
  seen: Map<string, number> = new Map();
  private open: AttemptRow | null = null;
  private backoffUntil = 0;
  private readonly watches: LateChargeWatch[] = [];
  private isPaused = false;
  /** True from a cancellation at the end of the period until a resume. */
  private endsWithPeriod = false;
  private agreedMinor = this.state.terms.amountMinor;
  private manualRetryAt = -Infinity;
  /** The instant at which a charge must begin because of an unpause or a new payment method, or null. */
  private requiredChargeAt: number | null = null;
  /** The instant before which no attempt with the trigger may begin. */
  private notBefore = { scheduled: -Infinity, automatic_retry: -Infinity };
  /** The number of the cycle whose automatic retries a decline with `HARD` or `ASKS_PAYER` stopped. */
  private stoppedCycle: number | null = null;
  /** True if the latest attempt was voided, which leaves the status as it is. */
  private isLastVoided = false;
  /** The code of the latest decline. */
  private lastCode: string | null = null;

  override command<K extends Command['kind']>(
    kind: K,
    fields: CommandFields<K>,
  ): { decision: Decision; result: CommandResult | null } {
    const { open, openPhase, state } = this;
    const command = { ...fields, kind, commandId: '' } as Command;
    const { stoppedCycle } = this;
    // The new method may be charged, and declined, within the command.
    if (kind === 'replacePaymentMethod') this.stoppedCycle = null;
    const handled = super.command(kind, fields);
    const { ok } = handled.decision;
    if (!ok) this.stoppedCycle = stoppedCycle;
    if (openPhase) this.see(`${nameOf(command)} ${ok ? 'accepted' : 'refused'} while ${openPhase}`);
    if (command.kind === 'manualRetry') this.checkManualRetry(handled.decision, state.status, open);
    if (ok) this.updateExpectations(command, open, state.status);
    return handled;
  }

  /** Updates the expected dates and amounts after an accepted command. */
  private updateExpectations(
    command: Command,
    open: AttemptRow | null,
    status: SubscriptionStatus,
  ): void {
    const { notBefore } = this;
    switch (command.kind) {
      case 'cancel':
        if (command.atPeriodEnd === true) this.endsWithPeriod = true;
        else this.cancelledAt = this.now;
        this.requiredChargeAt = null;
        break;
      case 'resume':
        this.endsWithPeriod = false;
        break;
      case 'pause':
        this.isPaused = true;
        if (open) open.wasPaused = true;
        this.requiredChargeAt = null;
        break;
      case 'unpause':
        this.expectChargeAt(command.newNextPaymentAt);
        break;
      case 'replacePaymentMethod':
        // The owed cycle is charged with the new method at once, or after the open attempt is declined. Outside UNPAID a
        // date that was set stays. In PAUSED the unpause sets the date.
        if (status === 'UNPAID') notBefore.automatic_retry = -Infinity;
        if (open && status !== 'PAUSED') {
          this.requiredChargeAt = Math.max(this.now, notBefore.automatic_retry);
        } else if (status === 'UNPAID') this.requiredChargeAt = null;
        if (open) open.hasNewerMethod = true;
        break;
      case 'edit': {
        this.agreedMinor = command.newAmountMinor ?? this.agreedMinor;
        const at = command.newNextPaymentAt;
        if (at === undefined) break;
        if (this.requiredChargeAt !== null) this.requiredChargeAt = at;
        const isForOwed =
          (status === 'UNPAID' && this.stoppedCycle === null) ||
          (status !== 'PAUSED' && open !== null);
        notBefore.scheduled = at;
        notBefore.automatic_retry = isForOwed ? at : Math.min(at, notBefore.automatic_retry);
        break;
      }
      case 'manualRetry':
      case 'authenticatePayment':
      case 'completeCheckout':
        break;
    }
  }

  /** After a pause, one charge must begin at `at` and none before; none at all if a hard decline has stopped them. */
  private expectChargeAt(at: number): void {
    this.isPaused = false;
    const isStopped =
      this.stoppedCycle !== null && this.stoppedCycle === this.state.owed?.cycleNumber;
    this.requiredChargeAt = isStopped ? null : at;
    this.notBefore = { scheduled: at, automatic_retry: at };
  }

  protected override take(step: Parameters<Simulation['take']>[0]): void {
    if (step.do === 'endPause') this.expectChargeAt(step.at);
    super.take(step);
  }

  /**
   * Checks that a manual retry is accepted exactly if the subscription is UNPAID, no attempt is open, and the
   * last accepted manual retry is at least 4 h old.
   */
  private checkManualRetry(
    decision: Decision,
    status: SubscriptionStatus,
    open: AttemptRow | null,
  ): void {
    const isCooldownOver = this.now >= this.manualRetryAt + 4 * HOUR;
    const isAllowed = status === 'UNPAID' && open === null && isCooldownOver;
    must(decision.ok === isAllowed, 'a manual retry is accepted exactly when D-31 allows it');
    if (decision.ok) this.manualRetryAt = this.now;
    else if (status === 'UNPAID' && open) {
      must(
        decision.code === 'payment_outcome_pending',
        'the refusal says that the outcome is pending',
      );
    }
  }

  /**
   * Settles the attempt in REVIEW with an operator's decision. Has no effect without such an attempt, after an earlier
   * decision on it, and for `paid` if the gateway has not charged the attempt.
   */
  settleReview(finding: Finding): void {
    const row = this.open;
    if (row?.state !== 'REVIEW' || row.finding !== null) return;
    const isCharged = this.gateway.hasCharged(row.key, this.now);
    if (finding === 'paid' && !isCharged) return;
    this.see(`a person says ${finding}${finding !== 'paid' && isCharged ? ', wrongly' : ''}`);
    row.finding = finding;
    this.state = settleNow(this.state, this.now);
  }

  /**
   * Ends all faults, runs the clock for three months in which reviews are settled as not charged, and then
   * for 60 years. Checks that every required charge has begun and every late-charge watch has ended.
   */
  comeToRest(): void {
    this.gateway.heal();
    this.deaths.length = 0;
    for (let month = 0; month < 3; month += 1) {
      this.runTo(this.now + 30 * DAY);
      this.settleReview('not_charged');
    }
    this.runTo(this.now + 60 * 365 * DAY);
    this.gateway.letArrive(this.now);
    const isStopped = this.stoppedCycle === this.state.owed?.cycleNumber;
    const isOver = this.state.status === 'ENDED' || isStopped;
    must(
      this.requiredChargeAt === null || isOver,
      'a charge begins when an unpause or a new method requires it',
    );
    must(this.watches.length === 0, 'every late-charge watch ends');
    for (const { wasMissed, isFirst } of this.gateway.lateArrivals) {
      if (!isFirst) this.see('arrived after it was sent again');
      else if (wasMissed) this.see('arrived after nothing was found');
    }
  }

  override runTo(at: string | number): void {
    const target = typeof at === 'number' ? at : Date.parse(at);
    for (let steps = 0; steps < 10_000; steps += 1) {
      const step = decide(this.state, this.now, this.now);
      const watch = this.watches.toSorted((a, b) => a.lookAt - b.lookAt)[0];
      const stepAt =
        step.do === 'finish'
          ? Infinity
          : step.do === 'wait'
            ? (step.until ?? Infinity)
            : Math.max(this.now, this.backoffUntil);
      const lookAt = watch?.lookAt ?? Infinity;
      if (Math.min(stepAt, lookAt) > target) {
        this.now = Math.max(this.now, target);
        return;
      }
      this.now = Math.max(this.now, Math.min(stepAt, lookAt));
      if (watch && lookAt <= stepAt) this.look(watch);
      else if (step.do !== 'wait' && step.do !== 'finish') this.take(step);
    }
    throw new Error('the simulation takes more than 10,000 steps');
  }

  /** The date that was last set, by an edit, an unpause or the planned end of a pause. */
  get setDateAt(): number {
    return this.notBefore.scheduled;
  }

  /** The phase of the open attempt when a command arrives. */
  get openPhase(): 'unsent' | 'sent' | 'in review' | null {
    if (!this.open) return null;
    if (this.open.state === 'CREATED') return 'unsent';
    return this.open.state === 'REVIEW' ? 'in review' : 'sent';
  }

  /** A copy of the rules of `activities/subscription.ts`. */
  protected override askGateway(owed: OwedCycle, attempt: OpenAttempt): Exchange {
    const key = chargeKey(owed.intentId, attempt.attemptNumber);
    const row = this.rows.get(key) ?? this.begin(key, owed, attempt);
    must(row === this.open, 'only the open attempt uses the gateway');
    const before = row.state;
    const answer = this.collect(row, owed, attempt);
    if (answer.kind === 'unknown') {
      if (before === 'UNKNOWN') return { kind: 'nothing_new' };
      row.state = 'UNKNOWN';
    }
    if (answer.kind === 'review') {
      if (before === 'REVIEW') return { kind: 'nothing_new' };
      this.see(`review: ${answer.reason}`);
      row.state = 'REVIEW';
    }
    if (answer.kind === 'gave_up') this.backoffUntil = this.now + BACKOFF_MS;
    if (answer.kind === 'succeeded' || answer.kind === 'declined') this.close(row, answer);
    if (answer.kind !== 'gave_up' && answer.kind !== 'nothing_new') {
      this.see(`${attempt.trigger} ${answer.kind}`);
    }
    return answer;
  }

  /** Checks that an attempt may begin now, and adds its row. */
  private begin(key: string, owed: OwedCycle, { trigger }: OpenAttempt): AttemptRow {
    const { status, terms } = this.state;
    must(this.open === null, 'an attempt begins only after the last one is settled');
    must(
      this.cancelledAt === null && !this.endsWithPeriod && !this.isPaused,
      'no attempt begins after a cancel or a pause',
    );
    const isQuiet =
      (this.retryPlan.unpaidFrom === 'retries_exhausted' || this.isLastVoided) &&
      trigger === 'automatic_retry' &&
      (status === 'TRIALING' || status === 'ACTIVE');
    this.isLastVoided = false;
    must(
      isQuiet || START_STATUSES[trigger]?.includes(status) === true,
      `${trigger} does not begin in ${status}`,
    );
    if (trigger === 'scheduled' || trigger === 'automatic_retry') {
      must(
        this.now >= this.notBefore[trigger],
        `${trigger} does not begin before the date that was set`,
      );
    }
    const isAutomatic = trigger === 'automatic_retry' || trigger === 'scheduled';
    must(
      !isAutomatic || this.stoppedCycle !== owed.cycleNumber,
      'after a hard decline no attempt begins by itself',
    );
    must(
      trigger !== 'authentication' || this.lastCode === ASKS_PAYER,
      'a payer confirms only a payment that the bank asked to confirm',
    );
    if (this.requiredChargeAt !== null && this.now >= this.requiredChargeAt)
      this.requiredChargeAt = null;
    const agreed = (owed.cycleNumber === 1 ? terms.upfrontAmountMinor : null) ?? this.agreedMinor;
    const amountMinor = this.owedMinor.get(owed.cycleNumber) ?? agreed;
    this.owedMinor.set(owed.cycleNumber, amountMinor);
    const row: AttemptRow = {
      key,
      cycleNumber: owed.cycleNumber,
      amountMinor,
      state: 'CREATED',
      firstSentAt: null,
      finding: null,
      hasNewerMethod: false,
      wasPaused: false,
    };
    this.rows.set(key, row);
    this.open = row;
    return row;
  }

  private close(row: AttemptRow, answer: Exchange): void {
    const { status } = this.state;
    this.open = null;
    if (status === 'ENDED' || status === 'PAUSED') this.see(`${answer.kind} while ${status}`);
    row.state = answer.kind === 'succeeded' ? 'SUCCEEDED' : 'DECLINED';
    if (answer.kind === 'succeeded' && status === 'UNPAID') this.passSetDate();
    if (answer.kind === 'declined') this.lastCode = answer.code;
    const isHard = answer.kind === 'declined' && [HARD, ASKS_PAYER].includes(answer.code);
    if (isHard && !row.hasNewerMethod) this.stoppedCycle = row.cycleNumber;
  }

  /** If the cycle is paid before its date that was set, the next date is one interval after that date. */
  private passSetDate(): void {
    const { interval, intervalCount } = this.state.terms;
    const { scheduled } = this.notBefore;
    if (this.now < scheduled) {
      this.notBefore.scheduled = cycleAt(scheduled, interval, intervalCount, 1);
    }
  }

  /**
   * A copy of the rules of `activities/charging/gateway-exchange.ts`. An unknown answer ends the exchange, as with a
   * send budget of 0.
   */
  private collect(row: AttemptRow, owed: OwedCycle, attempt: OpenAttempt): Exchange {
    const { lookups } = attempt;
    if (row.state === 'REVIEW') return this.outcomeInReview(row);
    const isPayerPresent = attempt.trigger === 'authentication';
    const isOver = this.state.status !== 'UNPAID' || this.isUnconfirmed(row);
    if (isPayerPresent && isOver) return this.withdrawn(row);
    const isVoided = this.isVoided(row);
    let mayBeAtGateway = row.state !== 'CREATED';
    if (isVoided && !mayBeAtGateway) return this.voided(row);
    for (;;) {
      const found = mayBeAtGateway
        ? this.gateway.lookup(row.key, this.now)
        : this.send(row, owed.amountMinor, isPayerPresent);
      switch (found.kind) {
        case 'succeeded':
        case 'declined':
        case 'gave_up':
          return found;
        case 'absent':
          if (isVoided) return this.voided(row);
          this.see('sent again under its key');
          mayBeAtGateway = false;
          continue;
        case 'rejected':
          return { kind: 'review', reason: 'rejected' };
        case 'unknown':
          if (found.awaitsPayer) return { kind: 'unknown', awaitsPayer: true };
          return isAskedLongEnough(lookups)
            ? { kind: 'review', reason: 'asked for 24 h' }
            : { kind: 'unknown' };
      }
    }
  }

  private isVoided({ wasPaused, hasNewerMethod }: AttemptRow): boolean {
    const isOver = this.state.status === 'ENDED' || this.endsWithPeriod;
    return isOver || wasPaused || hasNewerMethod;
  }

  /** True if the payer did not confirm the charge in time, or has given another payment method. */
  private isUnconfirmed({ firstSentAt, hasNewerMethod }: AttemptRow): boolean {
    const isLate = firstSentAt !== null && this.now - firstSentAt >= CONFIRM_WITHIN_MS;
    return isLate || hasNewerMethod;
  }

  private withdrawn(row: AttemptRow): Exchange {
    const { status } = this.state;
    const unconfirmed = { kind: 'declined', code: ASKS_PAYER } as const;
    const declined = () => (status === 'UNPAID' ? unconfirmed : this.asVoided());
    if (row.state === 'CREATED') return declined();
    const found = this.gateway.withdraw(row.key, row.amountMinor, this.now);
    if (found.kind === 'rejected') return { kind: 'review', reason: 'rejected' };
    if (found.kind !== 'withdrawn') return found;
    this.see(`withdrawn from the payer, ${row.hasNewerMethod ? 'new method' : status}`);
    return declined();
  }

  private send(row: AttemptRow, amountMinor: number, isPayerPresent: boolean) {
    must(
      this.cancelledAt === null && !this.endsWithPeriod && !this.isPaused,
      'nothing is sent after a cancel or a pause',
    );
    must(!row.wasPaused, 'an attempt that a pause has voided is not sent after an unpause');
    must(!row.hasNewerMethod, 'a payment method that the payer has replaced is not charged');
    must(amountMinor === row.amountMinor, 'the sent amount is the amount owed on the due date');
    const death = this.deaths.shift();
    if (death === 'before_sending') return { kind: 'gave_up' } as const;
    row.state = 'SENDING';
    row.firstSentAt ??= this.now;
    const found = this.gateway.charge(row.key, amountMinor, this.now, isPayerPresent);
    return death ? ({ kind: 'gave_up' } as const) : found;
  }

  private voided(row: AttemptRow): Exchange {
    const isSent = row.state !== 'CREATED';
    const { status } = this.state;
    this.see(`voided ${isSent ? 'after' : 'before'} it was sent, ${status}`);
    if (isSent) this.watches.push({ row, looks: 0, lookAt: this.now });
    return this.asVoided();
  }

  private asVoided(): Exchange {
    this.isLastVoided = true;
    return { kind: 'declined', code: 'processing_error', isWithdrawn: true };
  }

  private outcomeInReview(row: AttemptRow): Exchange {
    if (row.finding === 'paid') return { kind: 'succeeded', byPerson: true };
    const found = this.gateway.lookup(row.key, this.now);
    if (found.kind === 'succeeded' || found.kind === 'declined') {
      if (row.finding) this.see("the gateway's answer overrode the person's");
      return found;
    }
    if (!row.finding) return { kind: 'review', reason: 'waits' };
    this.watches.push({ row, looks: 0, lookAt: this.now });
    const code = row.finding === 'declined' ? 'card_declined' : 'processing_error';
    return { kind: 'declined', code, byPerson: true };
  }

  /** A copy of the rules of `activities/orders/late-charges.ts`. */
  private look(watch: LateChargeWatch): void {
    const { row, looks } = watch;
    const found = this.gateway.lookup(row.key, this.now);
    const isNotCharged = found.kind === 'absent' || found.kind === 'declined';
    if (found.kind !== 'succeeded' && !(isNotCharged && isLastLateLook(looks))) {
      watch.lookAt = this.now + lateLookDelayMs(looks);
      watch.looks += 1;
      return;
    }
    this.watches.splice(this.watches.indexOf(watch), 1);
    if (found.kind !== 'succeeded') return;
    const { key: gatewayKey, amountMinor } = row;
    const { currency } = this.state.terms;
    this.adopt(applyLateCharge(this.state, { amountMinor, currency, gatewayKey }, this.now));
    this.gateway.giveBack(gatewayKey);
    this.see(row.finding ? 'refunded after a person said no' : 'refunded after it was voided');
  }

  private see(situation: string): void {
    this.seen.set(situation, (this.seen.get(situation) ?? 0) + 1);
  }
}

function nameOf(command: Command): string {
  if (command.kind === 'cancel' && command.atPeriodEnd === true) {
    return 'cancel at the end of the period';
  }
  if (command.kind !== 'edit') return command.kind;
  if (command.interval !== undefined) return 'edit of the interval';
  if (command.newNextPaymentAt !== undefined) return 'edit of the date';
  return command.newAmountMinor === undefined ? 'edit of the count' : 'edit of the amount';
}

function must(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new Error(`broken rule: ${rule}`);
}
