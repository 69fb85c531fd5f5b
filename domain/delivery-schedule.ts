const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Waits before each attempt of a delivery, counted from the end of the previous attempt. The first attempt
 * is made at once. Ten attempts span 75.6 hours without jitter. Rule: D-54.
 */
export const ATTEMPT_DELAYS_MS: readonly number[] = [
  0,
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];

/** A delivery that failed this often lets later events of its stream pass. Rule: D-54. */
export const HOLDS_BACK_FAILURES = 3;

const JITTER = 0.2;
const RETRY_AFTER_LIMIT_MS = 24 * HOUR_MS;

/** A configuration without a single success for this long is deactivated. Rule: D-54. */
const FAILING_LIMIT_MS = 5 * DAY_MS;

/** The progress of a pending delivery. */
export interface DeliveryProgress {
  /** Attempts made, all of them failed. */
  attempts: number;
  nextAttemptAt: number;
}

/** The first attempt is always due, so clock differences between machines cannot delay it. */
export function isDue(delivery: DeliveryProgress, nowAt: number): boolean {
  return delivery.attempts === 0 || delivery.nextAttemptAt <= nowAt;
}

/** True while later events of the stream wait for this one. Rule: D-54. */
export function holdsBackLaterEvents(delivery: DeliveryProgress): boolean {
  return delivery.attempts < HOLDS_BACK_FAILURES;
}

/**
 * Milliseconds from a failed attempt to the next, or null when the schedule is used up. `jitter` is a
 * number from 0 to 1 that moves the wait evenly within ±20 %. The endpoint's `retryAfterMs`, at most 24
 * hours of it, can only lengthen the wait. Rule: D-54.
 */
export function delayAfterFailure(failure: {
  /** Attempts made so far, including the one that just failed. */
  attempts: number;
  jitter: number;
  retryAfterMs: number | null;
}): number | null {
  const delay = ATTEMPT_DELAYS_MS[failure.attempts];
  if (delay === undefined) return null;
  const jittered = Math.round(delay * (1 - JITTER + 2 * JITTER * failure.jitter));
  return Math.max(jittered, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_LIMIT_MS));
}

/**
 * Milliseconds that a `Retry-After` header asks for: whole seconds, or an HTTP date after `nowAt`. Null for
 * anything else and for a date in the past.
 */
export function parseRetryAfter(header: string | null, nowAt: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * SECOND_MS : parseHttpDate(text) - nowAt;
  return waitMs > 0 ? waitMs : null;
}

/** NaN unless the text starts with a day of the week, as every HTTP date does. */
function parseHttpDate(text: string): number {
  return /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN;
}

export type DeactivationReason = 'endpoint_gone' | 'failing_for_five_days';

/**
 * Why a failed attempt deactivates the configuration, or null: an answer 410, or five days since the first
 * failure without a success in between. Rule: D-54.
 */
export function deactivationAfterFailure(failure: {
  httpStatus: number | null;
  /** First failure since the last success; null when this failure is the first. */
  failingSinceAt: number | null;
  nowAt: number;
}): DeactivationReason | null {
  if (failure.httpStatus === 410) return 'endpoint_gone';
  const { failingSinceAt, nowAt } = failure;
  const isLost = failingSinceAt !== null && nowAt - failingSinceAt >= FAILING_LIMIT_MS;
  return isLost ? 'failing_for_five_days' : null;
}
