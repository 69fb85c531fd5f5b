import { parseDuration } from './duration.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The automatic retries of a declined cycle. Each delay counts from the previous automatic attempt. */
export interface RetryPlan {
  delaysMs: number[];
  afterExhausted: (typeof AFTER_EXHAUSTED)[number];
  /** When the subscription becomes UNPAID: at the first decline (default), or when no retry is left. */
  unpaidFrom?: UnpaidFrom;
}

export const AFTER_EXHAUSTED = ['stay_unpaid', 'end'] as const;

export const UNPAID_FROM = ['first_decline', 'retries_exhausted'] as const;
export type UnpaidFrom = (typeof UNPAID_FROM)[number];

export const DEFAULT_RETRY_PLAN: RetryPlan = {
  delaysMs: [4 * HOUR_MS, 8 * HOUR_MS, 12 * HOUR_MS, 24 * HOUR_MS],
  afterExhausted: 'stay_unpaid',
};

export const MANUAL_RETRY_COOLDOWN_MS = 4 * HOUR_MS;

/** The most retries of a plan: with the first attempt, as many as the limits of a card allow in 30 days. */
export const RETRIES_MAX = 14;

/** Converts delays such as `4h` to ms. If a delay or their number is not allowed, returns the reason as text. */
export function readDelays(texts: readonly string[]): number[] | string {
  const delaysMs = texts.map(parseDuration).filter((ms) => ms !== null);
  if (delaysMs.length < texts.length) return 'must be times like 4h or 2d (units d, h, m, s)';
  if (delaysMs.length > RETRIES_MAX) return `must be at most ${RETRIES_MAX} times`;
  const isDelay = (ms: number): boolean => ms >= 60_000 && ms <= 30 * DAY_MS;
  return delaysMs.every(isDelay) ? delaysMs : 'must be times from 1 minute to 30 days';
}

/** Not before `notBeforeAt`, which also adds one retry to a plan that is just used up. Null if none is left. */
export function nextAutomaticAttemptAt(
  { delaysMs }: RetryPlan,
  retriesUsed: number,
  previousAt: number | undefined,
  notBeforeAt: number | null,
): number | null {
  const isAdded = notBeforeAt !== null && retriesUsed > 0 && retriesUsed === delaysMs.length;
  const delayMs = isAdded ? 0 : delaysMs[retriesUsed];
  if (delayMs === undefined || previousAt === undefined) return null;
  return Math.max(previousAt + delayMs, notBeforeAt ?? 0);
}
