import { jitterOf } from './subscription/jitter.ts';

/** Longest wait, in ms, after the first and the second failure in a row. */
const LONGEST_MS = [10_000, 20_000] as const;
const LONGEST_MAX_MS = 30_000;

/**
 * Returns how long a workflow waits after an activity has used up its retries, in ms: 5 to 10 s after the
 * first failure in a row, 10 to 20 s after the second, 15 to 30 s after every later one. `failures` is the
 * number of failures in a row, from 1. The wait also depends on `key`, so that workflows that failed together
 * do not call the activity again together.
 */
export function backoffMs(failures: number, key: string): number {
  const longest = LONGEST_MS[failures - 1] ?? LONGEST_MAX_MS;
  return longest / 2 + jitterOf(`${key}#${failures}`, longest / 2);
}
