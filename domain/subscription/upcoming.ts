import { firstIndexAfter } from '../calendar.ts';
import { calendarAfterPayment } from './apply-attempt.ts';
import { applyUnpause } from './apply-command.ts';
import {
  calendarDate,
  cancelAt,
  isDunned,
  jitterAt,
  nextRetryAt,
  remainingCycleCount,
  resumeAt,
} from './state.ts';
import { cycleAmountMinor } from './terms.ts';
import type { SubscriptionState } from './state.ts';

export interface UpcomingCharge {
  /** The due date. For a declined cycle: its next automatic retry; null if none is planned. */
  at: number | null;
  /** The charge is made at most this many ms after `at`. */
  jitterMs: number;
  cycleNumber: number;
  amountMinor: number;
  currency: string;
}

/**
 * Returns the next charges, at most `limit`, as if every charge succeeded and no command came. Leaves out dates that
 * pass before a declined cycle is paid. `now` is the subscription's own time.
 */
export function upcomingCharges(
  state: SubscriptionState,
  limit: number,
  now: number,
): UpcomingCharge[] {
  const { status, owed, terms } = state;
  const pauseEndAt = resumeAt(state);
  if (pauseEndAt !== null) {
    const resumed = applyUnpause(state, pauseEndAt, pauseEndAt, null);
    return upcomingCharges(resumed.state, limit, pauseEndAt);
  }
  if (status !== 'TRIALING' && status !== 'ACTIVE' && status !== 'UNPAID') return [];
  if (cancelAt(state) !== null) return [];
  const count = Math.min(remainingCycleCount(state), Math.max(0, limit));
  const isOwing = isDunned(state);
  const inFlight = isOwing || state.openAttempt?.voidedBy ? null : state.openAttempt;
  const nextIndex = isOwing
    ? indexAfterRecovery(state, now)
    : inFlight
      ? calendarAfterPayment(state, inFlight, now).nextIndex
      : state.nextIndex + 1;
  return Array.from({ length: count }, (_, offset) => {
    const cycleNumber = state.cyclesCharged + 1 + offset;
    const isOwed = owed?.cycleNumber === cycleNumber;
    const isRetry = isOwing && offset === 0;
    const at = isRetry
      ? nextRetryAt(state)
      : isOwed && inFlight
        ? owed.dueAt
        : calendarDate(state, nextIndex - 1 + offset);
    return {
      at,
      jitterMs: isRetry || at === null ? 0 : jitterAt(state, at),
      cycleNumber,
      amountMinor: isOwed ? owed.amountMinor : cycleAmountMinor(terms, cycleNumber),
      currency: terms.currency,
    };
  });
}

/** Returns the index of the first date after the owed cycle's next retry, if one is planned, or after `now`. */
function indexAfterRecovery({ anchorAt, terms, owed }: SubscriptionState, now: number): number {
  const paidAt = Math.max(now, owed?.nextRetryAt ?? now);
  // Index 0 belongs to the cycle that was owed when the anchor was set.
  return Math.max(1, firstIndexAfter(anchorAt ?? now, terms.interval, terms.intervalCount, paidAt));
}
