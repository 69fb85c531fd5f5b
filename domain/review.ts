/**
 * What a person may decide in REVIEW. Of an attempt: paid, declined or not charged. Of a refund: refunded
 * or not.
 */
export const REVIEW_OUTCOMES = [
  'paid',
  'declined',
  'not_charged',
  'refunded',
  'not_refunded',
] as const;
export type ReviewOutcome = (typeof REVIEW_OUTCOMES)[number];

/** Identifies an attempt. Rule: D-21. */
export interface AttemptRef {
  merchantId: string;
  attemptId: string;
}

/** The outcome of the watch for a late charge of an attempt that is settled as not paid. */
export type LateChargeOutcome =
  /** The decision is not booked, the look-up had no answer, or the last look-up is still to come. */
  | { kind: 'pending' }
  /** There is no late charge, and the watch is over. */
  | { kind: 'absent' }
  /** The charge was made. It is booked beside the cycles, and its refund is under way. */
  | { kind: 'found'; refundId: string; gatewayChargeId: string };

const HOUR = 3_600_000;
/** Look-ups after 10 min, 1 h, 6 h, 1 d, 3 d and 7 d. If the last has no answer, it is repeated daily. */
const LATE_LOOK_DELAYS_MS = [
  HOUR / 6,
  (5 * HOUR) / 6,
  5 * HOUR,
  18 * HOUR,
  48 * HOUR,
  96 * HOUR,
] as const;

/** The wait, in ms, after `looks` look-ups that did not end the watch. */
export function lateLookDelayMs(looks: number): number {
  return LATE_LOOK_DELAYS_MS[looks] ?? 24 * HOUR;
}

/** Whether the look-up after `looks` earlier ones may end the watch. */
export function isLastLateLook(looks: number): boolean {
  return looks >= LATE_LOOK_DELAYS_MS.length;
}
