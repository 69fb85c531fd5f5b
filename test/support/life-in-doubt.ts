import { isAskedLongEnough } from '../../domain/lookup-delays.ts';
import { chargeKey } from '../../domain/payment-intent.ts';
import type { AttemptState, AttemptTrigger } from '../../domain/payment-intent.ts';
import { isLastLateLook, lateLookDelayMs } from '../../domain/review.ts';
import { applyLateCharge, settleNow } from '../../domain/subscription/apply-attempt.ts';
import type { Command, CommandResult } from '../../domain/subscription/commands.ts';
import { decide } from '../../domain/subscription/decide.ts';
import type { Decision } from '../../domain/subscription/validate-command.ts';
import type {
  OpenAttempt,
  OwedCycle,
  SubscriptionStatus,
} from '../../domain/subscription/state.ts';
import { ModelGateway } from './model-gateway.ts';
import { DAY, HOUR, Simulation } from './simulation.ts';
import type { Exchange } from './simulation.ts';

/** The worker dies with the attempt recorded: before its request left, or before its answer counted. */
export type Death = 'before_sending' | 'after_sending';

/** What a person says of an attempt in REVIEW. Only a charge that is there can be called paid. */
export type Finding = 'paid' | 'declined' | 'not_charged';

interface AttemptRow {
  key: string;
  cycleNumber: number;
  amountMinor: number;
  state: AttemptState;
  firstSentAt: number | null;
  /** Of a person, in REVIEW. */
  finding: Finding | null;
  hasNewerMethod: boolean;
}

interface Watch {
  row: AttemptRow;
  looks: number;
  lookAt: number;
}

/** The one hard decline of these lives. */
export const HARD = 'stolen_card';
/** Of the workflow, after an activity gave up. */
const HOLD_MS = 10_000;
/** A gateway that honours keys for a day. */
const KEY_TOO_OLD_MS = 0.8 * DAY;

/** In which statuses an attempt may begin. Rule: D-§4. */
const BEGINS_IN: Partial<Record<AttemptTrigger, readonly SubscriptionStatus[]>> = {
  checkout: ['CREATED'],
  scheduled: ['TRIALING', 'ACTIVE'],
  automatic_retry: ['UNPAID'],
  manual_retry: ['UNPAID'],
  new_method: ['UNPAID'],
};

/**
 * A subscription whose gateway is real to it: outcomes come out of a book, through whatever the network
 * and the worker do. What `activities/` and `db/` add to the rules (rows by key, ask before sending
 * again, withdraw after the end, REVIEW, looking for late charges) is here once more, as small as it
 * can be. Throws where something happens that no rule allows; it knows what was agreed from the
 * accepted commands alone.
 */
export class LifeInDoubt extends Simulation {
  readonly gateway = new ModelGateway();
  readonly rows = new Map<string, AttemptRow>();
  readonly deaths: Death[] = [];
  /** Amount owed by cycle number, as agreed when it fell due. */
  readonly owedMinor = new Map<number, number>();
  cancelledAt: number | null = null;
  /** How often what was seen, over all lives that share it. */
  seen: Map<string, number> = new Map();
  private open: AttemptRow | null = null;
  private heldUntil = 0;
  private readonly watches: Watch[] = [];
  private isPaused = false;
  private agreedMinor = this.state.terms.amountMinor;
  private manualRetryAt = -Infinity;
  /** Something is charged then, by an unpause or because there is a new method. */
  private promisedAt: number | null = null;
  /** No charge by date, and no automatic retry, before these. */
  private notBefore = { scheduled: -Infinity, automatic_retry: -Infinity };
  /** The number of the cycle that a hard decline stopped. */
  private stoppedCycle: number | null = null;
  private hasUnpaused = false;

  override command<K extends Command['kind']>(
    kind: K,
    fields: Omit<Extract<Command, { kind: K }>, 'kind' | 'commandId'>,
  ): { decision: Decision; result: CommandResult | null } {
    const { open, doubt, state } = this;
    const command = { ...fields, kind, commandId: '' } as Command;
    const answer = super.command(kind, fields);
    const { ok } = answer.decision;
    if (doubt) this.see(`${nameOf(command)} ${ok ? 'accepted' : 'refused'} while ${doubt}`);
    if (command.kind === 'manualRetry') this.checkManualRetry(answer.decision, state.status, open);
    if (ok) this.agree(command, open, state.status);
    return answer;
  }

  /** What the merchant and the payer may rely on from now on. */
  private agree(command: Command, open: AttemptRow | null, status: SubscriptionStatus): void {
    const { notBefore } = this;
    switch (command.kind) {
      case 'cancel':
        this.cancelledAt = this.now;
        break;
      case 'pause':
        this.isPaused = true;
        this.promisedAt = null;
        break;
      case 'unpause':
        this.isPaused = false;
        this.hasUnpaused = true;
        this.promisedAt = command.newNextPaymentAt;
        notBefore.scheduled = command.newNextPaymentAt;
        notBefore.automatic_retry = command.newNextPaymentAt;
        break;
      case 'replacePaymentMethod':
        // What is owed is charged with it at once, or as soon as the open attempt is declined.
        if (open) this.promisedAt = this.now;
        else if (status === 'UNPAID') this.promisedAt = null;
        this.stoppedCycle = null;
        notBefore.automatic_retry = -Infinity;
        if (open) open.hasNewerMethod = true;
        break;
      case 'edit': {
        this.agreedMinor = command.newAmountMinor ?? this.agreedMinor;
        const at = command.newNextPaymentAt;
        if (at === undefined) break;
        if (this.promisedAt !== null) this.promisedAt = at;
        const isPlan = status === 'UNPAID' && this.stoppedCycle === null;
        notBefore.scheduled = at;
        notBefore.automatic_retry = isPlan ? at : Math.min(at, notBefore.automatic_retry);
        break;
      }
      case 'manualRetry':
      case 'completeCheckout':
        break;
    }
  }

  /** Accepted when nothing is undecided and four hours are over, and never else. Rule: D-31. */
  private checkManualRetry(
    decision: Decision,
    status: SubscriptionStatus,
    open: AttemptRow | null,
  ): void {
    const isCool = this.now >= this.manualRetryAt + 4 * HOUR;
    const isAllowed = status === 'UNPAID' && open === null && isCool;
    must(decision.ok === isAllowed, 'a manual retry is accepted when it may be');
    if (decision.ok) this.manualRetryAt = this.now;
    else if (status === 'UNPAID' && open) {
      must(decision.code === 'payment_outcome_pending', 'its refusal names the doubt');
    }
  }

  /** A person looks into what is in REVIEW, if anything is, and writes down what came of it. */
  settleReview(finding: Finding): void {
    const row = this.open;
    if (row?.state !== 'REVIEW' || row.finding !== null) return;
    const isThere = this.gateway.hasCharged(row.key, this.now);
    if (finding === 'paid' && !isThere) return;
    this.see(`a person says ${finding}${finding !== 'paid' && isThere ? ', wrongly' : ''}`);
    row.finding = finding;
    this.state = settleNow(this.state, this.now);
  }

  /** Nothing fails any more, people do their work, and time passes. */
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
    must(this.promisedAt === null || isOver, 'what was announced is charged');
    must(this.watches.length === 0, 'a late charge is not looked for for ever');
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
            : Math.max(this.now, this.heldUntil);
      const lookAt = watch?.lookAt ?? Infinity;
      if (Math.min(stepAt, lookAt) > target) {
        this.now = Math.max(this.now, target);
        return;
      }
      this.now = Math.max(this.now, Math.min(stepAt, lookAt));
      if (watch && lookAt <= stepAt) this.look(watch);
      else if (step.do !== 'wait' && step.do !== 'finish') this.take(step);
    }
    throw new Error('it never comes to rest');
  }

  /** The date that an edit or an unpause set last. */
  get setDateAt(): number {
    return this.notBefore.scheduled;
  }

  /** What is open, as whoever gives a command finds it. */
  get doubt(): 'unsent' | 'asked for' | 'in review' | null {
    if (!this.open) return null;
    if (this.open.state === 'CREATED') return 'unsent';
    return this.open.state === 'REVIEW' ? 'in review' : 'asked for';
  }

  /** As `activities/charging.ts` has it. */
  protected override meetGateway(owed: OwedCycle, attempt: OpenAttempt): Exchange {
    const key = chargeKey(owed.intentId, attempt.attemptNumber);
    const row = this.rows.get(key) ?? this.begin(key, owed, attempt);
    must(row === this.open, 'only what is open meets the gateway');
    const before = row.state;
    const met = this.collect(row, owed, attempt);
    if (met.kind === 'unknown') {
      if (before === 'UNKNOWN') return { kind: 'nothing_new' };
      row.state = 'UNKNOWN';
    }
    if (met.kind === 'review') {
      if (before === 'REVIEW') return { kind: 'nothing_new' };
      this.see(`review: ${met.reason}`);
      row.state = 'REVIEW';
    }
    if (met.kind === 'gave_up') this.heldUntil = this.now + HOLD_MS;
    if (met.kind === 'succeeded' || met.kind === 'declined') this.close(row, met);
    if (met.kind !== 'gave_up' && met.kind !== 'nothing_new') {
      this.see(`${attempt.trigger} ${met.kind}`);
    }
    return met;
  }

  /** A new attempt: may it be, now, and for this amount? */
  private begin(key: string, owed: OwedCycle, { trigger }: OpenAttempt): AttemptRow {
    const { status, terms } = this.state;
    must(this.open === null, 'an attempt begins only when the one before is decided');
    must(this.cancelledAt === null && !this.isPaused, 'none begins after a cancel or a pause');
    must(BEGINS_IN[trigger]?.includes(status) === true, `${trigger} does not begin in ${status}`);
    if (trigger === 'scheduled' || trigger === 'automatic_retry') {
      must(this.now >= this.notBefore[trigger], `${trigger} not before the date that was set`);
    }
    const isStopped = this.stoppedCycle === owed.cycleNumber && !this.hasUnpaused;
    must(trigger !== 'automatic_retry' || !isStopped, 'a hard decline stops automatic retries');
    this.hasUnpaused = false;
    if (this.promisedAt !== null && this.now >= this.promisedAt) this.promisedAt = null;
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
    };
    this.rows.set(key, row);
    this.open = row;
    return row;
  }

  private close(row: AttemptRow, met: Exchange): void {
    const { status } = this.state;
    this.open = null;
    if (status === 'ENDED' || status === 'PAUSED') this.see(`${met.kind} while ${status}`);
    row.state = met.kind === 'succeeded' ? 'SUCCEEDED' : 'DECLINED';
    const isHard = met.kind === 'declined' && met.code === HARD;
    if (isHard && !row.hasNewerMethod) this.stoppedCycle = row.cycleNumber;
  }

  /** As `activities/gateway-exchange.ts` has it, with no time for a second question. */
  private collect(row: AttemptRow, owed: OwedCycle, { lookups }: OpenAttempt): Exchange {
    if (row.state === 'REVIEW') return this.reviewed(row);
    const isCalledOff = this.state.status === 'ENDED' || this.state.status === 'PAUSED';
    let mayBeThere = row.state !== 'CREATED';
    if (isCalledOff && !mayBeThere) return this.withdrawn(row);
    for (;;) {
      const found = mayBeThere
        ? this.gateway.lookup(row.key, this.now)
        : this.send(row, owed.amountMinor);
      switch (found.kind) {
        case 'succeeded':
        case 'declined':
        case 'gave_up':
          return found;
        case 'absent':
          if (isCalledOff) return this.withdrawn(row);
          if (this.now - (row.firstSentAt ?? this.now) > KEY_TOO_OLD_MS) {
            return { kind: 'review', reason: 'key too old' };
          }
          this.see('sent again under its key');
          mayBeThere = false;
          continue;
        case 'rejected':
          return { kind: 'review', reason: 'rejected' };
        case 'unknown':
          return isAskedLongEnough(lookups)
            ? { kind: 'review', reason: 'asked for 24 h' }
            : { kind: 'unknown' };
      }
    }
  }

  private send(row: AttemptRow, amountMinor: number) {
    must(this.cancelledAt === null && !this.isPaused, 'nothing is sent after a cancel or a pause');
    must(amountMinor === row.amountMinor, 'what is sent is what was owed when it fell due');
    const death = this.deaths.shift();
    if (death === 'before_sending') return { kind: 'gave_up' } as const;
    row.state = 'SENDING';
    row.firstSentAt ??= this.now;
    const found = this.gateway.charge(row.key, amountMinor, this.now);
    return death ? ({ kind: 'gave_up' } as const) : found;
  }

  private withdrawn(row: AttemptRow): Exchange {
    const isSent = row.state !== 'CREATED';
    const { status } = this.state;
    this.see(`withdrawn ${isSent ? 'after it was sent' : 'unsent'}, ${status}`);
    if (isSent) this.watches.push({ row, looks: 0, lookAt: this.now });
    return { kind: 'declined', code: 'processing_error' };
  }

  private reviewed(row: AttemptRow): Exchange {
    if (row.finding === 'paid') return { kind: 'succeeded', byPerson: true };
    const found = this.gateway.lookup(row.key, this.now);
    if (found.kind === 'succeeded' || found.kind === 'declined') {
      if (row.finding) this.see('the gateway knew more than the person');
      return found;
    }
    if (!row.finding) return { kind: 'review', reason: 'waits' };
    this.watches.push({ row, looks: 0, lookAt: this.now });
    const code = row.finding === 'declined' ? 'card_declined' : 'processing_error';
    return { kind: 'declined', code, byPerson: true };
  }

  /** As `activities/late-charges.ts` has it. */
  private look(watch: Watch): void {
    const { row, looks } = watch;
    const found = this.gateway.lookup(row.key, this.now);
    const isCertain = found.kind === 'absent' || found.kind === 'declined';
    if (found.kind !== 'succeeded' && !(isCertain && isLastLateLook(looks))) {
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
    this.see(row.finding ? 'given back: a person had said no' : 'given back: it was withdrawn');
  }

  private see(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }
}

function nameOf(command: Command): string {
  if (command.kind !== 'edit') return command.kind;
  if (command.interval !== undefined) return 'edit of the interval';
  if (command.newNextPaymentAt !== undefined) return 'edit of the date';
  return command.newAmountMinor === undefined ? 'edit of the count' : 'edit of the amount';
}

function must(isSo: boolean, what: string): asserts isSo {
  if (!isSo) throw new Error(`broken: ${what}`);
}
