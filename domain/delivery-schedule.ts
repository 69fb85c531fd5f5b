const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Waits before each attempt, from the end of the previous one. Ten attempts span 75.6 hours without jitter. */
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

/** After this many failures of a delivery, later events of its stream no longer wait for it. */
export const HOLDS_BACK_FAILURES = 3;

const JITTER = 0.2;
const RETRY_AFTER_LIMIT_MS = 24 * HOUR_MS;

/** A configuration whose attempts all failed for this long is deactivated. */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** Parts of {@link FAILING_LIMIT_MS} after which the merchant is warned. */
const WARNS_AFTER: readonly number[] = [0.5, 0.9];

/** Why a request got no answer, or one that is no answer of the endpoint. */
export const SEND_ERRORS = [
  'name',
  'refused_address',
  'connect',
  'tls',
  'timeout',
  'reset',
  'redirect',
  'too_large',
  'invalid_answer',
  'refused_recipient',
] as const;
export type SendError = (typeof SEND_ERRORS)[number];

/** The end of one request to an endpoint: the status of its answer, or why there is none. */
export interface PingResult {
  httpStatus: number | null;
  error: SendError | null;
  durationMs: number;
  answer: string | null;
}

/** True if later events of the stream must wait for this delivery, all of whose attempts failed. */
export function holdsBackLaterEvents(delivery: { attempts: number }): boolean {
  return delivery.attempts < HOLDS_BACK_FAILURES;
}

/**
 * Returns the delay in ms to the next attempt; null when the schedule is used up. `jitter`, 0 to 1, changes it by ±20
 * %. `retryAfterMs` can only lengthen it, to at most 24 h.
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

/** Returns the delay in ms of a `Retry-After` header, seconds or an HTTP date; null for another form or a past date. */
export function parseRetryAfter(header: string | null, nowAt: number): number | null {
  if (header === null) return null;
  const text = header.trim();
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * SECOND_MS : parseHttpDate(text) - nowAt;
  return waitMs > 0 ? waitMs : null;
}

/** NaN if the text does not start with a day of the week, as every HTTP date does. */
function parseHttpDate(text: string): number {
  return /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN;
}

export const DEACTIVATION_REASONS = ['endpoint_gone', 'failing_for_five_days'] as const;
export type DeactivationReason = (typeof DEACTIVATION_REASONS)[number];

/** Returns why a failed attempt (410, or failures for five days) deactivates the configuration; null if it does not. */
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

/** Returns the number of warnings that a configuration has earned which fails since `failingSinceAt`. */
export function warningsAfter(failingSinceAt: number | null, nowAt: number): number {
  if (failingSinceAt === null) return 0;
  const part = (nowAt - failingSinceAt) / FAILING_LIMIT_MS;
  return WARNS_AFTER.filter((limit) => part >= limit).length;
}
