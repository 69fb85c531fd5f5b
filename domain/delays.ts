const DAY_MS = 24 * 3_600_000;

/** Delays in ms before the first three look-ups of an unknown outcome. */
const FIRST_DELAYS_MS = [10_000, 30_000, 60_000] as const;

/** The longest delay in ms of the first day. An outcome is so known within 5 min of the gateway's return. */
const DELAY_MAX_MS = 290_000;
/** Two later delays of the first day differ by at most this time, in ms. */
const JITTER_MS = 10_000;

/** Number of look-ups before the first daily look-up. Their delays add up to at least 24 h and at most 25 h. */
const LOOKUPS_OF_FIRST_DAY = 313;

/** Number of daily look-ups, after the first day, of a charge that the gateway has received and not decided. */
const PENDING_DAYS_MAX = 30;

export const REVIEW_DELAY_MS = DAY_MS;

/**
 * Returns the delay, in ms, before the next look-up, after `lookups` look-ups without an outcome: at most 290 s on the
 * first day, then a day. `key` spreads the look-ups.
 */
export function lookupDelayMs(lookups: number, key: string): number {
  const first = FIRST_DELAYS_MS[lookups];
  if (first !== undefined) return first;
  if (isAskedLongEnough(lookups)) return DAY_MS;
  const spreadMs = lookups === FIRST_DELAYS_MS.length ? DELAY_MAX_MS : JITTER_MS;
  return DELAY_MAX_MS - jitterOf(`${key}#${lookups}`, spreadMs);
}

/**
 * Returns the number of look-ups after one more without an outcome. A charge that could not be sent is sent every 290 s,
 * however long that lasts, and none of its sends counts towards manual review.
 */
export function lookupsAfter(lookups: number, isUnsent: boolean): number {
  return isUnsent ? Math.min(lookups + 1, FIRST_DELAYS_MS.length + 1) : lookups + 1;
}

/** True after 24 h of look-ups: if two in a row then get no answer, the attempt or refund goes to manual review. */
export function isAskedLongEnough(lookups: number): boolean {
  return lookups >= LOOKUPS_OF_FIRST_DAY;
}

/** True if a charge was looked up for 24 h and then daily for 30 days, and the gateway has not decided it. */
export function isPendingTooLong(lookups: number): boolean {
  return lookups >= LOOKUPS_OF_FIRST_DAY + PENDING_DAYS_MAX;
}

/** Returns the wait in ms after `failures` failures in a row: 5–10, 10–20, 15–30 s, spread over keys. */
export function backoffMs(failures: number, key: string): number {
  const longest = 10_000 * Math.min(failures, 3);
  return longest / 2 + jitterOf(`${key}#${failures}`, longest / 2);
}

/**
 * Returns a delay of 0 to `windowMs` ms, which spreads work due at the same instant. It is a hash of `key`, so every
 * call and every replay returns the same value.
 */
export function jitterOf(key: string, windowMs: number): number {
  return windowMs <= 0 ? 0 : fnv1a(key) % (windowMs + 1);
}

function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0;
}
