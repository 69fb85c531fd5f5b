/** Backoff before the first, second, … look-up of an unknown outcome. The last one repeats. */
const LOOKUP_DELAYS_MS = [10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000] as const;

const ASKED_FOR_MS_MAX = 24 * 3_600_000;

/** Time between look-ups of an attempt or refund in REVIEW. */
export const REVIEW_DELAY_MS = 24 * 3_600_000;

/** The backoff, in ms, after `lookups` look-ups that found no outcome. */
export function lookupDelayMs(lookups: number): number {
  return LOOKUP_DELAYS_MS[lookups] ?? 3_600_000;
}

/** True when the backoffs of `lookups` look-ups came to 24 h. The next fruitless look-up goes to review. */
export function isAskedLongEnough(lookups: number): boolean {
  let askedForMs = 0;
  for (let n = 0; n < lookups && askedForMs < ASKED_FOR_MS_MAX; n += 1) {
    askedForMs += lookupDelayMs(n);
  }
  return askedForMs >= ASKED_FOR_MS_MAX;
}
