const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Delays in ms before the first, second, … look-up of an unknown outcome. Hourly look-ups follow. */
const FIRST_DELAYS_MS = [10_000, 30_000, 60_000, 300_000, 900_000] as const;

/** Number of look-ups before the first daily look-up. Their delays add up to 24 h 21 min 40 s. */
const LOOKUPS_OF_FIRST_DAY = 29;

/** Number of daily look-ups, after the first day, of a charge that the gateway has received and not decided. */
const PENDING_DAYS_MAX = 30;

/** Time, in ms, between look-ups of an attempt or refund in REVIEW. */
export const REVIEW_DELAY_MS = DAY_MS;

/**
 * Returns the delay in ms before the next look-up, after `lookups` without an outcome. After the first day it is 24
 * h: only what the gateway has received and decides later is still looked up.
 */
export function lookupDelayMs(lookups: number): number {
  return FIRST_DELAYS_MS[lookups] ?? (isAskedLongEnough(lookups) ? DAY_MS : HOUR_MS);
}

const RECHECK_GAP_MS = 30_000;
const RECHECK_GAP_MAX_MS = 300_000;

/**
 * Returns the shortest time in ms from recheck number `rechecks` to the next: 30 s, doubled, at most 5 min. Limits
 * the requests for a key that the gateway never answers.
 */
export function recheckGapMs(rechecks: number): number {
  return Math.min(RECHECK_GAP_MAX_MS, RECHECK_GAP_MS * 2 ** (rechecks - 1));
}

/**
 * True if the delays before `lookups` look-ups add up to 24 h. If the gateway then answers neither of two look-ups in
 * a row, the attempt or refund goes to manual review.
 */
export function isAskedLongEnough(lookups: number): boolean {
  return lookups >= LOOKUPS_OF_FIRST_DAY;
}

/** True if a charge was looked up for 24 h and then daily for 30 days, and the gateway has not decided it. */
export function isPendingTooLong(lookups: number): boolean {
  return lookups >= LOOKUPS_OF_FIRST_DAY + PENDING_DAYS_MAX;
}
