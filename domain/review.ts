/**
 * What a person may find of something in REVIEW. Of an attempt: paid, declined, or never charged; of
 * a refund: given back or not.
 */
export const REVIEW_OUTCOMES = [
  'paid',
  'declined',
  'not_charged',
  'refunded',
  'not_refunded',
] as const;
export type ReviewOutcome = (typeof REVIEW_OUTCOMES)[number];

/** How everything names an attempt. Rule: D-21. */
export interface AttemptRef {
  merchantId: string;
  attemptId: string;
}

/** What looking for a charge that a person had settled as not made came to. */
export type LateChargeOutcome =
  /** Not settled, not answered, or not looked for long enough: look again later. */
  | { kind: 'pending' }
  /** There is none, and nobody looks any more. */
  | { kind: 'absent' }
  /** It was made, is booked beside the cycles, and goes back. */
  | { kind: 'found'; refundId: string; gatewayChargeId: string };

const HOUR = 3_600_000;
/** Looks after 10 min, 1 h, 6 h, 1 d, 3 d and 7 d; one that got no answer then is repeated daily. */
const LATE_LOOK_DELAYS_MS = [
  HOUR / 6,
  (5 * HOUR) / 6,
  5 * HOUR,
  18 * HOUR,
  48 * HOUR,
  96 * HOUR,
] as const;

/** The wait, in ms, after `looks` looks in vain. */
export function lateLookDelayMs(looks: number): number {
  return LATE_LOOK_DELAYS_MS[looks] ?? 24 * HOUR;
}

/** Whether the look after `looks` before it may be the last one. */
export function isLastLateLook(looks: number): boolean {
  return looks >= LATE_LOOK_DELAYS_MS.length;
}
