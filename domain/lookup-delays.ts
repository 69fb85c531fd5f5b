/** Delay in ms before the first, second, … look-up of an unknown outcome. The last delay repeats. */
const LOOKUP_DELAYS_MS = [10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000] as const;

const ASKED_FOR_MS_MAX = 24 * 3_600_000;

/** Time between look-ups of an attempt or refund in REVIEW. */
export const REVIEW_DELAY_MS = 24 * 3_600_000;

/** Returns the delay, in ms, before the next look-up, after `lookups` look-ups that found no outcome. */
export function lookupDelayMs(lookups: number): number {
  return LOOKUP_DELAYS_MS[lookups] ?? 3_600_000;
}

/**
 * Returns the delay, in ms, before the next look-up of a refund that the gateway has accepted and not decided:
 * the delay of {@link lookupDelayMs} for a day, then 24 h, because a bank may take days.
 */
export function acceptedRefundDelayMs(lookups: number): number {
  return isAskedLongEnough(lookups) ? 24 * 3_600_000 : lookupDelayMs(lookups);
}

const RECHECK_GAP_MS = 30_000;
const RECHECK_GAP_MAX_MS = 300_000;

/**
 * Returns the shortest time, in ms, from recheck number `rechecks` of an attempt or refund to the next: 30 s,
 * doubled each time, at most 5 min. A recheck is a look-up that the sweep requests when the gateway answers
 * again. The growing time limits the requests for a key that the gateway never answers.
 */
export function recheckGapMs(rechecks: number): number {
  return Math.min(RECHECK_GAP_MAX_MS, RECHECK_GAP_MS * 2 ** (rechecks - 1));
}

/**
 * True if the delays before `lookups` look-ups add up to at least 24 h. If the next look-up finds no outcome
 * either, the attempt or refund goes to manual review.
 */
export function isAskedLongEnough(lookups: number): boolean {
  let askedForMs = 0;
  for (let n = 0; n < lookups && askedForMs < ASKED_FOR_MS_MAX; n += 1) {
    askedForMs += lookupDelayMs(n);
  }
  return askedForMs >= ASKED_FOR_MS_MAX;
}
