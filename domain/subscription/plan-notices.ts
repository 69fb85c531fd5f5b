import { fullYears } from '../calendar.ts';
import type { NoticeType } from '../events.ts';
import { daysOfCycle, ruleFor } from '../notice-rules.ts';
import type { NoticeRule, NoticeRules } from '../notice-rules.ts';
import { earliestChargeAt, isOfRaise, givenNoticesOf } from './charge-time.ts';
import type { ChargeAhead } from './charge-time.ts';
import { chargeAhead, isSame } from './notices.ts';
import type { PlannedNotice } from './notices.ts';
import type { SubscriptionState } from './state.ts';

/** The plan of the next charge's notices, which is in the state. An activity makes it. */

const DAY_MS = 86_400_000;

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
  const hasRule = ruleFor(rules, 'subscription.amount_changing', terms) !== undefined;
  return isRaise && hasRule ? { raised: { fromMinor } } : null;
}

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
    return rule && applies(state, charge, rule) ? ofDate(state, charge, rule, now) : [];
  });
  const raise = ruleFor(rules, 'subscription.amount_changing', terms);
  const all = [...planned, ...(raise ? ofRaise(state, charge, raise, now) : [])];
  return all.toSorted((one, other) => one.dueAt - other.dueAt);
}

/** A yearly rule has one charge for each full year, of which it may give several notices. */
function applies(state: SubscriptionState, charge: ChargeAhead, rule: NoticeRule): boolean {
  const years = rule.isYearly ? fullYears(state.createdAt, charge.chargeAt) : Infinity;
  return years > (state.remindedYears ?? 0) || givenNoticesOf(state, charge, false).length > 0;
}

/** If all its instants are over, a yearly notice is given at once, and so is one for which the charge waits. */
function ofDate(
  state: SubscriptionState,
  charge: ChargeAhead,
  rule: NoticeRule,
  now: number,
): PlannedNotice[] {
  const lead = leadOf(state, rule);
  const later = instantsAfter(now, charge, rule);
  const isNeeded = lead !== null || (rule.isYearly === true && charge.chargeAt > now);
  const isAtOnce = isNeeded && later.length === 0 && !isGivenInTime(state, charge, rule, lead);
  return (isAtOnce ? [now] : later).map((dueAt) => ({ notice: rule.notice, dueAt, ...lead }));
}

/** If an edit raises the amount after its notice was due, the notice is given at once, and once for each charge. */
function ofRaise(
  state: SubscriptionState,
  charge: ChargeAhead,
  rule: NoticeRule,
  now: number,
): PlannedNotice[] {
  const { raised, terms } = state;
  const { amountMinor, chargeAt } = charge;
  if (!raised || amountMinor !== terms.amountMinor || amountMinor <= raised.fromMinor) return [];
  const lead = leadOf(state, rule);
  const later = instantsAfter(now, charge, rule);
  const isAhead = lead !== null || earliestChargeAt(state, chargeAt) > now;
  const isLate = later.length < rule.daysBefore.length && isAhead;
  const isAtOnce = isLate && !isGivenInTime(state, charge, rule, lead);
  const instants = isAtOnce ? [now, ...later] : later;
  return instants.map((dueAt) => ({ notice: rule.notice, dueAt, ...lead }));
}

/** True if a notice of the charge was given early enough, or the charge waits for it. */
function isGivenInTime(
  state: SubscriptionState,
  charge: ChargeAhead,
  rule: NoticeRule,
  lead: { leadMs: number } | null,
): boolean {
  const given = givenNoticesOf(state, charge, isOfRaise(rule));
  const [first, last] = [given[0], given.at(-1)];
  if (!first || !last) return false;
  return (
    first.countsFromAt + (lead?.leadMs ?? 0) <= Math.max(charge.chargeAt, last.chargeFromAt ?? 0)
  );
}

const instantsAfter = (now: number, { chargeAt }: ChargeAhead, { daysBefore }: NoticeRule) =>
  daysBefore.map((count) => chargeAt - count * DAY_MS).filter((dueAt) => dueAt > now);

/** Null if the charge does not wait, for example because the notice does not fit into the trial or cycle before it. */
function leadOf(state: SubscriptionState, rule: NoticeRule): { leadMs: number } | null {
  const { trial } = state.terms;
  const days = Math.min(...rule.daysBefore);
  const isInTrial = trial !== null && endsTrial(state) && !isOfRaise(rule);
  const trialDays = isInTrial
    ? daysOfCycle({ interval: trial.interval, intervalCount: trial.count })
    : Infinity;
  const fits = days < Math.min(trialDays, daysOfCycle(state.terms));
  return rule.mustPrecede && fits ? { leadMs: days * DAY_MS } : null;
}
