import { firstIndexAfter, fullYears } from '../calendar.ts';
import type { NoticeRules } from '../notice-rules.ts';
import { calendarAfterPayment } from './apply-attempt.ts';
import { applyUnpause } from './apply-command.ts';
import { dateOfCause } from './charge-cause.ts';
import { latestChargeAt, earliestChargeAt } from './charge-time.ts';
import { noticesOf } from './plan-notices.ts';
import type { PlannedNotice } from './notices.ts';
import {
  calendarDate,
  cancelAt,
  isDunned,
  nextAmountMinor,
  nextRetryAt,
  remainingCycleCount,
  resumeAt,
} from './state.ts';
import { cycleAmountMinor } from './terms.ts';
import type { SubscriptionState } from './state.ts';

export interface UpcomingCharge {
  /** The due date. For a declined cycle: its next automatic retry; null if none is planned. */
  at: number | null;
  /** The time in which the charge is made, as well as it is known: later than `at` because of a late notice or of jitter. */
  fromAt: number | null;
  untilAt: number | null;
  cycleNumber: number;
  amountMinor: number;
  currency: string;
  /** The notices that are still to come. */
  notices: readonly PlannedNotice[];
}

/**
 * Returns the next charges, at most `limit`, as if every charge succeeded and no command came. Leaves out dates that
 * pass before a declined cycle is paid. `now` is the subscription's own time. `noticeRules`: of the charges after the
 * first, whose notices are planned.
 */
export function upcomingCharges(
  state: SubscriptionState,
  limit: number,
  now: number,
  noticeRules: NoticeRules = [],
  cardExpiresAt: number | null = null,
): UpcomingCharge[] {
  const { status, owed, terms } = state;
  const pauseEndAt = resumeAt(state);
  if (pauseEndAt !== null) {
    const resumed = applyUnpause(state, pauseEndAt, pauseEndAt, null);
    return upcomingCharges(resumed.state, limit, pauseEndAt, noticeRules, cardExpiresAt);
  }
  if (status !== 'TRIALING' && status !== 'ACTIVE' && status !== 'UNPAID') return [];
  if (cancelAt(state) !== null) return [];
  const count = Math.min(remainingCycleCount(state), Math.max(0, limit));
  const first = firstCharge(state, now);
  const renewed = { ...state, status: 'ACTIVE', cyclesCharged: state.cyclesCharged + 1 } as const;
  const paysRaise = nextAmountMinor(state) === terms.amountMinor;
  const dateOf = (offset: number) =>
    offset === 0 ? first.at : calendarDate(state, first.indexAfter + offset - 1);
  return Array.from({ length: count }, (_, offset) => {
    const cycleNumber = state.cyclesCharged + 1 + offset;
    const isOwed = owed?.cycleNumber === cycleNumber;
    const isRetry = offset === 0 && first.isRetry;
    const at = dateOf(offset);
    const amountMinor = isOwed ? owed.amountMinor : cycleAmountMinor(terms, cycleNumber);
    const after = offset === 1 && !paysRaise ? renewed : { ...renewed, raised: undefined };
    return {
      at,
      fromAt: isRetry || at === null ? at : earliestChargeAt(state, at),
      untilAt: isRetry || at === null ? at : latestChargeAt(state, at),
      cycleNumber,
      amountMinor,
      currency: terms.currency,
      notices:
        offset === 0 || at === null
          ? plannedFor(state, at)
          : noticesOf(
              remindedUntil(after, dateOf(offset - 1) ?? now),
              { chargeAt: at, amountMinor },
              noticeRules,
              Math.max(now, dateOf(offset - 1) ?? now),
              cardExpiresAt,
            ),
    };
  });
}

const remindedUntil = (state: SubscriptionState, at: number): SubscriptionState => ({
  ...state,
  remindedYears: fullYears(state.createdAt, at),
});

function plannedFor({ notices }: SubscriptionState, at: number | null): readonly PlannedNotice[] {
  return notices && notices.chargeAt === at ? notices.pending : [];
}

/** `indexAfter`: the calendar's index of the second charge. */
interface FirstCharge {
  at: number | null;
  isRetry: boolean;
  indexAfter: number;
}

function firstCharge(state: SubscriptionState, now: number): FirstCharge {
  const { owed, openAttempt, nextIndex } = state;
  if (isDunned(state)) {
    return { at: nextRetryAt(state), isRetry: true, indexAfter: indexAfterRecovery(state, now) };
  }
  // A command may have moved the calendar since the charge in flight was due.
  if (owed && openAttempt?.voidedBy === null) {
    const after = calendarAfterPayment(state, openAttempt, now);
    const at = dateOfCause(openAttempt.cause) ?? owed.dueAt;
    return { at, isRetry: openAttempt.cause.rule !== 'due_date', indexAfter: after.nextIndex };
  }
  return { at: calendarDate(state, nextIndex), isRetry: false, indexAfter: nextIndex + 1 };
}

/** Returns the index of the first date after the owed cycle's next retry, if one is planned, or after `now`. */
function indexAfterRecovery({ anchorAt, terms, owed }: SubscriptionState, now: number): number {
  const paidAt = Math.max(now, owed?.nextRetryAt ?? now);
  // Index 0 belongs to the cycle that was owed when the anchor was set.
  return Math.max(1, firstIndexAfter(anchorAt ?? now, terms.interval, terms.intervalCount, paidAt));
}
