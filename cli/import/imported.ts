import type { ImportStatus } from '../../db/schema/subscriptions.ts';
import { cycleAt, firstIndexAfter } from '../../domain/calendar.ts';
import type { IntervalUnit } from '../../domain/calendar.ts';
import type { SubscriptionState } from '../../domain/subscription/state.ts';
import type { Terms } from '../../domain/subscription/terms.ts';

export interface Calendar {
  readonly anchorAt: number;
  readonly interval: IntervalUnit;
  readonly intervalCount: number;
}

export function indexOfDate(calendar: Calendar, at: number): number | null {
  const index = indexAfter(calendar, at) - 1;
  return index >= 0 && dateOf(calendar, index) === at ? index : null;
}

/** Returns the calendar's last date up to `at` (none if the anchor is later) and its first date after `at`. */
export function datesAround(calendar: Calendar, at: number): number[] {
  const index = indexAfter(calendar, at);
  return (index === 0 ? [0] : [index - 1, index]).map((each) => dateOf(calendar, each));
}

const indexAfter = ({ anchorAt, interval, intervalCount }: Calendar, at: number): number =>
  firstIndexAfter(anchorAt, interval, intervalCount, at);

const dateOf = ({ anchorAt, interval, intervalCount }: Calendar, index: number): number =>
  cycleAt(anchorAt, interval, intervalCount, index);

export interface ImportedSubscription {
  readonly subscriptionId: string;
  readonly merchantId: string;
  readonly customerId: string;
  readonly paymentMethodId: string;
  readonly status: ImportStatus;
  readonly terms: Omit<Terms, 'upfrontAmountMinor' | 'trial'>;
  readonly cyclesCharged: number;
  /** Date 0 of the calendar. In TRIALING the end of the trial. */
  readonly anchorAt: number;
  /** Index of the calendar's date on which the next cycle is charged. */
  readonly nextIndex: number;
  readonly currentPeriodEndAt: number;
  readonly importedAt: number;
  readonly jitter: Pick<SubscriptionState, 'jitterMs' | 'jitterFor'>;
}

export function importedSubscription(input: ImportedSubscription): SubscriptionState {
  const { importedAt, jitter, ...fields } = input;
  const { status, cyclesCharged, anchorAt, nextIndex, currentPeriodEndAt } = input;
  const terms = { ...input.terms, upfrontAmountMinor: null, trial: null };
  return {
    schemaVersion: 1,
    ...fields,
    ...jitter,
    version: 1,
    endReason: null,
    terms,
    createdAt: importedAt,
    checkoutExpiresAt: importedAt,
    owed: null,
    openAttempt: null,
    cooldownUntilAt: null,
    cancelAtPeriodEnd: false,
    resumeAt: null,
    testClockId: null,
    latest: {
      version: 1,
      at: importedAt,
      actor: 'operator',
      kind: 'imported',
      terms,
      status,
      cyclesCharged,
      anchorAt,
      nextIndex,
      currentPeriodEndAt,
    },
  };
}
