import { calendarDate, cycleAmountMinor, remainingCycleCount } from './state.ts';
import type { SubscriptionState } from './state.ts';

export interface UpcomingCharge {
  /** When it is due; for an owed cycle when it is tried next, null when nothing is planned. */
  at: number | null;
  cycleNumber: number;
  amountMinor: number;
  currency: string;
}

/**
 * The charges that are to come if every one succeeds and nobody changes anything, at most `limit`.
 * Empty while nobody has paid yet, while paused, and after the end.
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
