import type { NoticeType } from '../events.ts';
import { nextAmountMinor, nextPaymentAt, resumeAt } from './state.ts';
import type { SubscriptionState } from './state.ts';

/** A charge that is not made without notice waits until its notices had their days. */

/** A notice that is given later than this, in ms, is late. */
export const LATE_MS = 3_600_000;

export interface ChargeAhead {
  chargeAt: number;
  amountMinor: number;
}

/** A raise may need more days than a date. */
export const isOfRaise = ({ notice }: { notice: NoticeType }): boolean =>
  notice === 'subscription.amount_changing';

/** Returns the notices that were given of a charge: with `ofRaise` those of its raised amount, else those of its date. */
export function givenNoticesOf(
  { givenNotices = [] }: Pick<SubscriptionState, 'givenNotices'>,
  charge: ChargeAhead,
  ofRaise: boolean,
) {
  return givenNotices.filter(
    (each) =>
      each.chargeAt === charge.chargeAt &&
      isOfRaise(each) === ofRaise &&
      (!ofRaise || each.amountMinor === charge.amountMinor),
  );
}

/** Returns when the charge of the calendar date `dueAt` may be made: at this date, or when a late notice had its days. */
export function earliestChargeAt(state: SubscriptionState, dueAt: number): number {
  const { notices } = state;
  const pending = notices?.chargeAt === dueAt ? notices.pending : [];
  const charge = { chargeAt: dueAt, amountMinor: nextAmountMinor(state) };
  const instants = [false, true].flatMap((ofRaise) => {
    const given = givenNoticesOf(state, charge, ofRaise).at(-1)?.chargeFromAt;
    const planned = pending.flatMap((each) =>
      each.leadMs === undefined || isOfRaise(each) !== ofRaise ? [] : each.dueAt + each.leadMs,
    );
    return given ?? (planned.length > 0 ? Math.min(...planned) : []);
  });
  return Math.max(dueAt, ...instants);
}

/** Returns when the charge of the calendar date `dueAt` is made at the latest, if the workers keep up. */
export function latestChargeAt(state: SubscriptionState, dueAt: number): number {
  const { jitterMs, jitterFor } = state;
  const delayMs = jitterFor === undefined || jitterFor === dueAt ? jitterMs : 0;
  return Math.max(dueAt + delayMs, earliestChargeAt(state, dueAt));
}

/** Returns the next charge as a payer should know it, also that of a pause's end; null if none comes. */
export function nextCharge(state: SubscriptionState): { dueAt: number; at: number } | null {
  const dueAt = nextPaymentAt(state) ?? resumeAt(state);
  return dueAt === null ? null : { dueAt, at: earliestChargeAt(state, dueAt) };
}

export function nextChargeAt(state: SubscriptionState): number | null {
  return nextCharge(state)?.at ?? null;
}
