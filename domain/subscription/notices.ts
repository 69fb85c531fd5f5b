import { daysOfCycle, fullYears, LATE_MS, ruleFor } from '../notice-rules.ts';
import type { NoticeRule, NoticeRules } from '../notice-rules.ts';
import type { NoticeType } from '../events.ts';
import { changed, subscriptionEvent } from './change.ts';
import type { Change } from './change.ts';
import type { EntryDraft } from './entries.ts';
import { heldUntil, isOfRaise, toldOf } from './hold.ts';
import type { ChargeAhead } from './hold.ts';
import { nextAmountMinor, nextDateAt, resumeAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** What a merchant is told of a charge before it comes. The plan of the next charge is in the state. */

const DAY_MS = 86_400_000;

/** Returns the next charge of a date, also that of a pause's end; null if a retry or nothing comes. */
function chargeAhead(state: SubscriptionState): ChargeAhead | null {
  const isStopped = state.owed?.retriesStopped === true;
  const chargeAt = nextDateAt(state) ?? (isStopped ? null : resumeAt(state));
  return chargeAt === null ? null : { chargeAt, amountMinor: nextAmountMinor(state) };
}

export interface PlannedNotice {
  notice: NoticeType;
  dueAt: number;
  /** The charge waits until the notice is so old. Absent: it does not wait. */
  holdMs?: number;
}

/** What the plan depends on, besides the state. */
export interface PlanFacts {
  /** When the card of the subscription expires. Null: not before the charge. */
  readonly cardExpiresAt: number | null;
  /** The amount of a cycle before the latest transition. Null: the same. */
  readonly formerAmountMinor: number | null;
}

type Planned = Pick<SubscriptionState, 'notices' | 'raised'>;

/** Returns the next charge if its notices are not planned yet, or by another cycle or payment method; else null. */
function chargeToPlan(state: SubscriptionState): ChargeAhead | null {
  const { notices, latest, version } = state;
  const charge = chargeAhead(state);
  const isNewPlan =
    latest.version === version &&
    (latest.kind === 'method_replaced' || (latest.kind === 'edited' && latest.every !== undefined));
  const isPlanned = charge && notices && isSame(notices, charge) && !isNewPlan;
  return isPlanned ? null : charge;
}

/** Which facts the plan needs. A renewal of a month needs none, so that it costs no read. */
export function factsNeeded(
  state: SubscriptionState,
  rules: NoticeRules,
): Record<keyof PlanFacts, boolean> {
  const { latest, version, raised, terms } = state;
  const hasRule = (notice: NoticeType) => ruleFor(rules, notice, terms) !== undefined;
  const isEdit = latest.kind === 'edited' && latest.version === version;
  const hasNewAmount = isEdit && latest.amountMinor !== undefined && raised === undefined;
  return {
    cardExpiresAt: chargeToPlan(state) !== null && hasRule('payment_method.expiring'),
    formerAmountMinor: hasNewAmount && hasRule('subscription.amount_changing'),
  };
}

/**
 * Plans the notices of the next charge if another charge has become the next one, or the payment method another. A notice
 * whose instant is over is planned only if the charge waits for it and it was not given. Null if the plan stays.
 */
export function planNotices(
  before: SubscriptionState,
  rules: NoticeRules,
  now: number,
  { cardExpiresAt, formerAmountMinor }: PlanFacts,
): Planned | null {
  const raise = raiseBy(before, rules, formerAmountMinor);
  const state = { ...before, ...raise };
  const charge = chargeToPlan(state);
  if (!charge && chargeAhead(state)) return raise;
  const pending = charge ? noticesOf(state, charge, rules, now, cardExpiresAt) : [];
  if (charge && pending.length > 0) return { ...raise, notices: { ...charge, pending } };
  return (state.notices ?? null) === null ? raise : { ...raise, notices: null };
}

const endsTrial = ({ status, terms, cyclesCharged }: SubscriptionState): boolean =>
  status === 'TRIALING' || (terms.trial !== null && cyclesCharged === 0);

/** The first raise since a payment counts: its former amount is the one that the payer knows. Null if there is none. */
function raiseBy(
  { raised, terms }: SubscriptionState,
  rules: NoticeRules,
  fromMinor: number | null,
): Planned | null {
  const isRaise = raised === undefined && fromMinor !== null && terms.amountMinor > fromMinor;
  const isTold = ruleFor(rules, 'subscription.amount_changing', terms) !== undefined;
  return isRaise && isTold ? { raised: { fromMinor } } : null;
}

const isSame = (one: ChargeAhead, other: ChargeAhead): boolean =>
  one.chargeAt === other.chargeAt && one.amountMinor === other.amountMinor;

/** Returns the notices of `charge` that are planned at `now`, earliest first. */
export function noticesOf(
  state: SubscriptionState,
  charge: ChargeAhead,
  rules: NoticeRules,
  now: number,
  cardExpiresAt: number | null,
): PlannedNotice[] {
  const { terms } = state;
  const ofPeriod = endsTrial(state) ? 'subscription.trial_ending' : 'subscription.renewal_upcoming';
  const misses = cardExpiresAt !== null && cardExpiresAt <= charge.chargeAt;
  const types: NoticeType[] = misses ? [ofPeriod, 'payment_method.expiring'] : [ofPeriod];
  const planned = types.flatMap((notice) => {
    const rule = ruleFor(rules, notice, terms);
    const years = rule?.isYearly ? fullYears(state.createdAt, charge.chargeAt) : Infinity;
    return rule && years > (state.remindedYears ?? 0) ? ofDate(state, charge, rule, now) : [];
  });
  const raise = ruleFor(rules, 'subscription.amount_changing', terms);
  const all = [...planned, ...(raise ? ofRaise(state, charge, raise, now) : [])];
  return all.toSorted((one, other) => one.dueAt - other.dueAt);
}

/** If none of its instants is left, a yearly notice, and one for which the charge waits, is given at once. */
function ofDate(
  state: SubscriptionState,
  charge: ChargeAhead,
  rule: NoticeRule,
  now: number,
): PlannedNotice[] {
  const hold = holdOf(state, rule);
  const later = instantsAfter(now, charge, rule);
  const isNeeded = hold !== null || (rule.isYearly === true && charge.chargeAt > now);
  const isAtOnce = isNeeded && later.length === 0 && !isTold(state, charge, rule, hold);
  return (isAtOnce ? [now] : later).map((dueAt) => ({ notice: rule.notice, dueAt, ...hold }));
}

/** An amount that is raised later than the notice would be due is told at once, but once for each charge. */
function ofRaise(
  state: SubscriptionState,
  charge: ChargeAhead,
  rule: NoticeRule,
  now: number,
): PlannedNotice[] {
  const { raised, terms } = state;
  const { amountMinor, chargeAt } = charge;
  if (!raised || amountMinor !== terms.amountMinor || amountMinor <= raised.fromMinor) return [];
  const hold = holdOf(state, rule);
  const later = instantsAfter(now, charge, rule);
  const isAhead = hold !== null || heldUntil(state, chargeAt) > now;
  const isLate = later.length < rule.daysBefore.length && isAhead;
  const isAtOnce = isLate && !isTold(state, charge, rule, hold);
  const instants = isAtOnce ? [now, ...later] : later;
  return instants.map((dueAt) => ({ notice: rule.notice, dueAt, ...hold }));
}

/** True if the charge was told early enough, or waits for long enough. */
function isTold(
  state: SubscriptionState,
  charge: ChargeAhead,
  rule: NoticeRule,
  hold: { holdMs: number } | null,
): boolean {
  const { holdMs = -Infinity } = hold ?? {};
  return toldOf(state, charge, isOfRaise(rule)).some(
    (told) => told.fromAt + holdMs <= Math.max(charge.chargeAt, told.heldUntilAt ?? 0),
  );
}

const instantsAfter = (now: number, { chargeAt }: ChargeAhead, { daysBefore }: NoticeRule) =>
  daysBefore.map((count) => chargeAt - count * DAY_MS).filter((dueAt) => dueAt > now);

/** Null if the charge does not wait, for example because the notice does not fit into the trial or cycle before it. */
function holdOf(state: SubscriptionState, rule: NoticeRule): { holdMs: number } | null {
  const { trial } = state.terms;
  const days = Math.min(...rule.daysBefore);
  const isInTrial = trial !== null && endsTrial(state) && !isOfRaise(rule);
  const trialDays = isInTrial
    ? daysOfCycle({ interval: trial.interval, intervalCount: trial.count })
    : Infinity;
  const fits = days < Math.min(trialDays, daysOfCycle(state.terms));
  return rule.mustPrecede && fits ? { holdMs: days * DAY_MS } : null;
}

/** Returns the next notice to give; null if there is none, or its charge is not the next one any more. */
export function nextNotice(state: SubscriptionState): PlannedNotice | null {
  const { notices } = state;
  const [first] = notices?.pending ?? [];
  if (!notices || !first) return null;
  const charge = chargeAhead(state);
  return charge && isSame(notices, charge) ? first : null;
}

/** What the entry of a notice says of it. */
export interface DueNotice extends Omit<PlannedNotice, 'holdMs'>, ChargeAhead {
  kind: 'notice_given' | 'notice_missed';
  /** When earlier ones had been due, in whose place it is given. */
  missedAt?: number[];
  /** The charge is not made before. Absent: it does not wait. */
  heldUntilAt?: number;
}

/** More raises of one charge are told only if a merchant edits it again and again. */
const RAISES_MAX = 20;

/** A notice counts from the instant at which it was due, unless it is late. */
const fromAt = (dueAt: number, now: number): number => (now - dueAt < LATE_MS ? dueAt : now);

/** Returns the notice that is due at `now`. If several of one kind are due, the latest one stands for all. */
export function dueNotice(state: SubscriptionState, now: number): DueNotice {
  const first = nextNotice(state);
  if (!first || !state.notices) throw new Error(`${state.subscriptionId}: no notice is due`);
  const { chargeAt, amountMinor, pending } = state.notices;
  const { notice, holdMs } = first;
  const instants = pending
    .filter((each) => each.notice === notice && each.dueAt <= now)
    .map(({ dueAt }) => dueAt);
  const missedAt = instants.slice(0, -1);
  const dueAt = instants.at(-1) ?? first.dueAt;
  const isMissed = holdMs === undefined && now >= heldUntil(state, chargeAt);
  const earlier = toldOf(state, state.notices, isOfRaise(first));
  const holds = earlier.flatMap(({ heldUntilAt = [] }) => heldUntilAt);
  return {
    kind: isMissed ? 'notice_missed' : 'notice_given',
    notice,
    chargeAt,
    amountMinor,
    dueAt,
    ...(missedAt.length > 0 && { missedAt }),
    ...(holdMs !== undefined && {
      heldUntilAt: Math.min(fromAt(dueAt, now) + holdMs, ...holds),
    }),
  };
}

/** Gives a notice of the next charge. One whose charge was due first is only recorded as missed. */
export function applyNotice(
  state: SubscriptionState,
  { kind, notice, chargeAt, amountMinor, dueAt, missedAt, heldUntilAt }: DueNotice,
  now: number,
): Change {
  const charge = { chargeAt, amountMinor };
  const ahead = chargeAhead(state);
  if (!ahead || !isSame(ahead, charge)) {
    throw new Error(`${state.subscriptionId}: another charge is the next one`);
  }
  const { notices } = state;
  const held = heldUntilAt !== undefined && { heldUntilAt };
  const facts = { notice, ...charge, dueAt, ...(missedAt && { missedAt }), ...held };
  const entry: EntryDraft = { at: now, kind, actor: 'schedule', ...facts };
  const isGiven = kind === 'notice_given';
  // A card that expires says nothing of the charge's date.
  const told = isGiven && notice !== 'payment_method.expiring';
  const patch = {
    ...(notices && {
      notices: {
        ...notices,
        pending: notices.pending.filter((each) => each.notice !== notice || each.dueAt > now),
      },
    }),
    ...(told && toldBy(state, { notice, ...charge, fromAt: fromAt(dueAt, now), ...held })),
  };
  const change = changed(state, patch, entry);
  if (!isGiven) return change;
  const event = subscriptionEvent(notice, change.state, now);
  const chargeFrom = heldUntil(change.state, chargeAt);
  return { ...change, events: [{ ...event, notice: { ...charge, dueAt, chargeFrom } }] };
}

/** A notice of another date supersedes all others. */
function toldBy(
  { told = [], createdAt, remindedYears = 0 }: SubscriptionState,
  given: NonNullable<SubscriptionState['told']>[number],
): Pick<SubscriptionState, 'told' | 'remindedYears'> {
  const years = fullYears(createdAt, given.chargeAt);
  const isReminder = given.notice === 'subscription.renewal_upcoming' && years > remindedYears;
  const all = [...told.filter(({ chargeAt }) => chargeAt === given.chargeAt), given];
  const raises = all.filter(isOfRaise).slice(-RAISES_MAX);
  return {
    told: [...all.filter((each) => !isOfRaise(each)), ...raises],
    ...(isReminder && { remindedYears: years }),
  };
}

/** The card has new details, and does not miss the next charge any more. Null if no notice says that it will. */
export function withdrawExpiring(
  state: SubscriptionState,
  cardExpiresAt: number,
  now: number,
): Change | null {
  const { notices } = state;
  const isExpiring = ({ notice }: PlannedNotice) => notice === 'payment_method.expiring';
  if (!notices?.pending.some(isExpiring) || cardExpiresAt <= notices.chargeAt) return null;
  const pending = notices.pending.filter((planned) => !isExpiring(planned));
  const entry = { at: now, kind: 'details_updated', actor: 'gateway' } as const;
  return changed(state, { notices: { ...notices, pending } }, entry);
}
