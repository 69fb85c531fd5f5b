import { formatInstant } from './calendar.ts';
import type { RefusalReason } from './errors.ts';

const HOUR_MS = 3_600_000;

/** The most unpaid attempts on one saved card in 24 h and in 30 days, over everything that charges it. */
export interface CardLimits {
  perDay: number;
  per30Days: number;
}

/** Mastercard fines more than 10 declines in 24 h, Visa more than 20 attempts in 30 days (15 until April 2026). */
export const DEFAULT_CARD_LIMITS: CardLimits = { perDay: 10, per30Days: 15 };
export const CARD_LIMITS_MAX: CardLimits = { perDay: 10, per30Days: 20 };

/** No limit counts attempts that are older. */
export const CARD_LIMIT_WINDOW_MS = 30 * 24 * HOUR_MS;

/** So many attempts in so many hours are unpaid that the next one may start only at `untilAt`. */
export interface ReachedLimit {
  readonly untilAt: number;
  readonly attempts: number;
  readonly hours: number;
}

/** What counts of the attempts on one card. `declinedAt`: latest first. `undecided`: those that may be declined yet. */
export interface UnpaidAttempts {
  readonly declinedAt: readonly number[];
  readonly undecided: number;
}

/** If only undecided attempts keep the next one back, it is tried again after this time, in ms. */
const UNDECIDED_MS = 5 * 60_000;

/** Null if an attempt may start at `now`. */
export function limitReached(
  { declinedAt, undecided }: UnpaidAttempts,
  limits: CardLimits,
  now: number,
): ReachedLimit | null {
  const declined = reachedBy(declinedAt, limits, now);
  if (declined || undecided === 0) return declined;
  const atOnce = Array.from({ length: undecided }, () => now);
  const all = reachedBy([...atOnce, ...declinedAt], limits, now);
  return all && { ...all, untilAt: now + UNDECIDED_MS };
}

function reachedBy(
  attemptsAt: readonly number[],
  { perDay, per30Days }: CardLimits,
  now: number,
): ReachedLimit | null {
  const day = limitOf(attemptsAt, perDay, 24);
  const month = limitOf(attemptsAt, per30Days, 30 * 24);
  const later = month.untilAt > day.untilAt ? month : day;
  return later.untilAt > now ? later : null;
}

function limitOf(attemptsAt: readonly number[], attempts: number, hours: number): ReachedLimit {
  const earliestAt = attemptsAt[attempts - 1] ?? -Infinity;
  return { untilAt: earliestAt + hours * HOUR_MS, attempts, hours };
}

export function limitText({ attempts, hours }: Omit<ReachedLimit, 'untilAt'>): string {
  const time = hours === 24 ? '24 h' : `${hours / 24} days`;
  const unpaid = attempts === 1 ? '1 unpaid attempt' : `${attempts} unpaid attempts`;
  return `its card has ${unpaid} in ${time}, the most allowed`;
}

export function limitRefusal(limit: ReachedLimit): RefusalReason {
  const retryAt = limit.untilAt;
  const message = `No charge is possible before ${formatInstant(retryAt)}: ${limitText(limit)}.`;
  return { code: 'bad_request', message, retryAt };
}
