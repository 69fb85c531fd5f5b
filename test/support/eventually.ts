import { vi } from 'vitest';

/** An upper bound for a busy machine, not an expected duration. */
const EVENTUALLY_MS = 60_000;

/**
 * Calls `check` until it passes, and returns its value. After 60 s, fails as the last call failed. For a single
 * expectation use `expect.poll`, which Vitest allows only in tests, and not in concurrent ones.
 */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: EVENTUALLY_MS, interval: 20 });
