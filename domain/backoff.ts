import { jitterOf } from './subscription/jitter.ts';

/** Longest wait, in ms, after the first and the second failure in a row. */
const LONGEST_MS = [10_000, 20_000] as const;
const LONGEST_MAX_MS = 30_000;

/**
 * Returns the wait in ms after an activity has used up its retries. Grows with `failures`, the failures in a row from
 * 1: 5–10, 10–20, 15–30 s. `key` spreads workflows that failed together.
 */
export function backoffMs(failures: number, key: string): number {
  const longest = LONGEST_MS[failures - 1] ?? LONGEST_MAX_MS;
  return longest / 2 + jitterOf(`${key}#${failures}`, longest / 2);
}
