/** Five failed attempts in a row, of any events, open the breaker. Then one attempt at a time is made, the probe. */

/** A webhook endpoint: its configuration. */
export interface EndpointRef {
  merchantId: string;
  configId: string;
}

/** The breaker as the configuration's row stores it. Instants are real time. */
export interface Breaker {
  /** Number of failed attempts since the last success, except those that ended during a pause. */
  consecutiveFailures: number;
  /** With an open breaker, no request before this instant; with a closed one, the latest failure. Null after a success. */
  pausedUntil: number | null;
  /** First failure since the last success, or since 30 h without an attempt; null after a success. */
  failingSince: number | null;
}

/** The result of one attempt. `at` is the end of the attempt; `jitter` is a random number from 0 to 1. */
export type BreakerOutcome = { kind: 'success' } | { kind: 'failure'; at: number; jitter: number };

export const CLOSED_BREAKER: Breaker = {
  consecutiveFailures: 0,
  pausedUntil: null,
  failingSince: null,
};

/** Number of failed attempts in a row that opens the breaker. */
export const OPENS_AFTER_FAILURES = 5;

/** Waits before the first, second, … probe. The last wait repeats. */
const PROBE_WAITS_MS: readonly number[] = [5_000, 10_000, 20_000, 40_000, 60_000];

const JITTER = 0.2;

/** Longer than the longest delay between two attempts, in ms. */
const QUIET_AFTER_MS = 30 * 3_600_000;

/** Maximum number of requests in flight to one endpoint from one process. */
export const LARGEST_WINDOW = 8;
/** Maximum number of requests in flight to all endpoints of one merchant from one process. */
export const MERCHANT_WINDOW = 32;

export function isOpen(breaker: Breaker): boolean {
  return breaker.consecutiveFailures >= OPENS_AFTER_FAILURES;
}

/** True if the breaker allows no request at `nowAt`, not even a probe. */
export function isPaused(breaker: Breaker, nowAt: number): boolean {
  return isOpen(breaker) && breaker.pausedUntil !== null && breaker.pausedUntil > nowAt;
}

/** `jitter` changes the wait by ±20 %. A request that fails during a pause began before it and does not prolong it. */
export function afterAttempt(breaker: Breaker, outcome: BreakerOutcome): Breaker {
  if (outcome.kind === 'success') return CLOSED_BREAKER;
  const { at, jitter } = outcome;
  const wasQuiet = breaker.pausedUntil !== null && at - breaker.pausedUntil > QUIET_AFTER_MS;
  const failingSince = wasQuiet ? at : (breaker.failingSince ?? at);
  if (isPaused(breaker, at)) return { ...breaker, failingSince };
  const consecutiveFailures = breaker.consecutiveFailures + 1;
  const waitMs = probeWait(consecutiveFailures, jitter);
  return {
    consecutiveFailures,
    pausedUntil: at + waitMs,
    failingSince,
  };
}

/** 0 while the breaker is closed. */
function probeWait(consecutiveFailures: number, jitter: number): number {
  const failedProbes = consecutiveFailures - OPENS_AFTER_FAILURES;
  if (failedProbes < 0) return 0;
  const wait = PROBE_WAITS_MS[Math.min(failedProbes, PROBE_WAITS_MS.length - 1)] ?? 0;
  return Math.round(wait * (1 - JITTER + 2 * JITTER * jitter));
}

/** Returns the limit of requests in flight when a queue begins to send: 1, the probe, if the breaker is open. */
export function firstWindow(breaker: Breaker): number {
  return isOpen(breaker) ? 1 : LARGEST_WINDOW;
}

/** Returns the limit of requests in flight after `window` successes in a row: twice `window`, at most 8. */
export function widerWindow(window: number): number {
  return Math.min(LARGEST_WINDOW, window * 2);
}
