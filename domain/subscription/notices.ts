import { fullYears } from '../calendar.ts';
import type { NoticeType } from '../events.ts';
import { changed, subscriptionEvent } from './change.ts';
import type { Change } from './change.ts';
import type { EntryDraft } from './entries.ts';
import { earliestChargeAt, isOfRaise, LATE_MS, givenNoticesOf } from './charge-time.ts';
import type { ChargeAhead } from './charge-time.ts';
import { nextAmountMinor, nextDateAt, resumeAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** What a merchant is told of a charge before it comes. */

/** Returns the next charge of a date, also that of a pause's end; null if a retry or nothing comes. */
export function chargeAhead(state: SubscriptionState): ChargeAhead | null {
  const isStopped = state.owed?.retriesStopped === true;
  const chargeAt = nextDateAt(state) ?? (isStopped ? null : resumeAt(state));
  return chargeAt === null ? null : { chargeAt, amountMinor: nextAmountMinor(state) };
}

export interface PlannedNotice {
  notice: NoticeType;
  dueAt: number;
  /** The charge waits until the notice is so old. Absent: it does not wait. */
  leadMs?: number;
}

export const isSame = (one: ChargeAhead, other: ChargeAhead): boolean =>
  one.chargeAt === other.chargeAt && one.amountMinor === other.amountMinor;

/** Returns the next notice to give; null if there is none, or its charge is not the next one any more. */
export function nextNotice(state: SubscriptionState): PlannedNotice | null {
  const { notices } = state;
  const [first] = notices?.pending ?? [];
  if (!notices || !first) return null;
  const charge = chargeAhead(state);
  return charge && isSame(notices, charge) ? first : null;
}

/** What the entry of a notice says of it. */
export interface DueNotice extends Omit<PlannedNotice, 'leadMs'>, ChargeAhead {
  kind: 'notice_given' | 'notice_missed';
  /** When earlier ones had been due, in whose place it is given. */
  missedAt?: number[];
  /** The charge is not made before. Absent: it does not wait. */
  chargeFromAt?: number;
}

/** Most notices of raised amounts that the state keeps: a merchant may edit one charge again and again. */
const RAISES_MAX = 20;

/** A notice counts from the instant at which it was due, unless it is late. */
const countsFromAt = (dueAt: number, now: number): number => (now - dueAt < LATE_MS ? dueAt : now);

/** Returns the notice that is due at `now`. If several of one kind are due, the latest one stands for all. */
export function dueNotice(state: SubscriptionState, now: number): DueNotice {
  const first = nextNotice(state);
  if (!first || !state.notices) throw new Error(`${state.subscriptionId}: no notice is due`);
  const { chargeAt, amountMinor, pending } = state.notices;
  const { notice, leadMs } = first;
  const instants = pending
    .filter((each) => each.notice === notice && each.dueAt <= now)
    .map(({ dueAt }) => dueAt);
  const missedAt = instants.slice(0, -1);
  const dueAt = instants.at(-1) ?? first.dueAt;
  const earlier = givenNoticesOf(state, state.notices, isOfRaise(first));
  const counted = [...earlier.map((given) => given.countsFromAt), countsFromAt(dueAt, now)];
  const chargeFromAt = leadMs === undefined ? null : Math.min(...counted) + leadMs;
  const isMissed = now >= Math.max(earliestChargeAt(state, chargeAt), chargeFromAt ?? 0);
  return {
    kind: isMissed ? 'notice_missed' : 'notice_given',
    notice,
    chargeAt,
    amountMinor,
    dueAt,
    ...(missedAt.length > 0 && { missedAt }),
    ...(chargeFromAt !== null && !isMissed && { chargeFromAt }),
  };
}

/** Gives a notice of the next charge, or records that the charge came first. */
export function applyNotice(
  state: SubscriptionState,
  { kind, notice, chargeAt, amountMinor, dueAt, missedAt, chargeFromAt }: DueNotice,
  now: number,
): Change {
  const charge = { chargeAt, amountMinor };
  const ahead = chargeAhead(state);
  if (!ahead || !isSame(ahead, charge)) {
    throw new Error(`${state.subscriptionId}: another charge is the next one`);
  }
  const { notices } = state;
  const wait = chargeFromAt !== undefined && { chargeFromAt };
  const facts = { notice, ...charge, dueAt, ...(missedAt && { missedAt }), ...wait };
  const entry: EntryDraft = { at: now, kind, actor: 'schedule', ...facts };
  const isGiven = kind === 'notice_given';
  // The notice of an expiring card is not the notice of the charge.
  const isOfCharge = isGiven && notice !== 'payment_method.expiring';
  const patch = {
    ...(notices && {
      notices: {
        ...notices,
        pending: notices.pending.filter((each) => each.notice !== notice || each.dueAt > now),
      },
    }),
    ...(isOfCharge &&
      withGiven(state, { notice, ...charge, countsFromAt: countsFromAt(dueAt, now), ...wait })),
  };
  const change = changed(state, patch, entry);
  if (!isGiven) return change;
  const event = subscriptionEvent(notice, change.state, now);
  const notBefore = earliestChargeAt(change.state, chargeAt);
  return {
    ...change,
    events: [{ ...event, notice: { ...charge, dueAt, chargeFromAt: notBefore } }],
  };
}

/** Adds a given notice. Those of other dates no longer count. */
function withGiven(
  { givenNotices = [], createdAt, remindedYears = 0 }: SubscriptionState,
  given: NonNullable<SubscriptionState['givenNotices']>[number],
): Pick<SubscriptionState, 'givenNotices' | 'remindedYears'> {
  const years = fullYears(createdAt, given.chargeAt);
  const isReminder = given.notice === 'subscription.renewal_upcoming' && years > remindedYears;
  const all = [...givenNotices.filter(({ chargeAt }) => chargeAt === given.chargeAt), given];
  const raises = all.filter(isOfRaise).slice(-RAISES_MAX);
  return {
    givenNotices: [...all.filter((each) => !isOfRaise(each)), ...raises],
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
