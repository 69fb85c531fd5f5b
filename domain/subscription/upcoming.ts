import { calendarDate, cycleAmountMinor, remainingCycleCount } from './state.ts';
import type { SubscriptionState } from './state.ts';

export interface UpcomingCharge {
  /** The due date. In UNPAID, the first charge has the next automatic retry; null if none is planned. */
  at: number | null;
  cycleNumber: number;
  amountMinor: number;
  currency: string;
}

/**
 * Returns at most `limit` future charges, as if every charge succeeded and no command changed the
 * subscription. Empty in CREATED, PAUSED and ENDED.
 */
export function upcomingCharges(state: SubscriptionState, limit: number): UpcomingCharge[] {
  const { status, owed, terms } = state;
  if (status !== 'TRIALING' && status !== 'ACTIVE' && status !== 'UNPAID') return [];
  const count = Math.min(remainingCycleCount(state), Math.max(0, limit));
  const isUnpaid = status === 'UNPAID';
  return Array.from({ length: count }, (_, offset) => {
    const cycleNumber = state.cyclesCharged + 1 + offset;
    const isOwed = owed?.cycleNumber === cycleNumber;
    return {
      at:
        isUnpaid && offset === 0
          ? (owed?.nextRetryAt ?? null)
          : calendarDate(state, state.nextIndex + offset),
      cycleNumber,
      amountMinor: isOwed ? owed.amountMinor : cycleAmountMinor(terms, cycleNumber),
      currency: terms.currency,
    };
  });
}
