export const REVIEW_OUTCOMES = [
  'paid',
  'declined',
  'not_charged',
  'refunded',
  'not_refunded',
] as const;
export type ReviewOutcome = (typeof REVIEW_OUTCOMES)[number];

export interface AttemptRef {
  merchantId: string;
  attemptId: string;
}

/** The result of one look-up for a late charge: a charge of an attempt that was settled as not paid. */
export type LateChargeOutcome =
  /**
   * No charge is known yet, or the decision of the review is not applied yet. More look-ups follow. `needsPerson`: the
   * gateway has another amount under the attempt's key, or refuses the look-up.
   */
  | { kind: 'pending'; needsPerson?: true }
  /** The gateway made no charge. No look-up follows. */
  | { kind: 'absent' }
  /** The gateway has made the charge. It is recorded, pays no cycle, and its refund has begun. */
  | { kind: 'found'; refundId: string; gatewayChargeId: string };

const HOUR = 3_600_000;
/** Look-ups at once, and 10 min, 1 h, 6 h, 1 d, 3 d and 7 d after the first; then daily until the gateway answers. */
const LATE_LOOK_DELAYS_MS = [
  HOUR / 6,
  (5 * HOUR) / 6,
  5 * HOUR,
  18 * HOUR,
  48 * HOUR,
  96 * HOUR,
] as const;

/** Returns the delay, in ms, before the next look-up, after `looks` look-ups that found no charge. */
export function lateLookDelayMs(looks: number): number {
  return LATE_LOOK_DELAYS_MS[looks] ?? 24 * HOUR;
}

/** True if no look-up follows, after `looks` earlier ones, once the gateway answered that it has made no charge. */
export function isLastLateLook(looks: number): boolean {
  return looks >= LATE_LOOK_DELAYS_MS.length;
}
