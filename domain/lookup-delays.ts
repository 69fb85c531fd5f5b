/** How long to wait before asking the gateway the n-th time. Rule: design §4. */
const LOOKUP_DELAYS_MS = [10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000] as const;

const ASKED_FOR_MS_MAX = 24 * 3_600_000;

/** Between questions once a person has to settle it. Rule: design §4. */
export const REVIEW_DELAY_MS = 24 * 3_600_000;

/** The wait, in ms, after `lookups` look-ups in vain; the last one repeats. */
export function lookupDelayMs(lookups: number): number {
  return LOOKUP_DELAYS_MS[lookups] ?? 3_600_000;
}

/** Whether the waits before this question came to 24 h: one more in vain, and a person is told. */
export function isAskedLongEnough(lookups: number): boolean {
  let askedForMs = 0;
  for (let n = 0; n < lookups && askedForMs < ASKED_FOR_MS_MAX; n += 1) {
    askedForMs += lookupDelayMs(n);
  }
  return askedForMs >= ASKED_FOR_MS_MAX;
}
