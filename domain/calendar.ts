import { invariant } from './errors.ts';

export const INTERVAL_UNITS = ['DAY', 'WEEK', 'MONTH', 'YEAR'] as const;

export type IntervalUnit = (typeof INTERVAL_UNITS)[number];

export function isIntervalUnit(value: unknown): value is IntervalUnit {
  return (INTERVAL_UNITS as readonly unknown[]).includes(value);
}

const DAY_MS = 86_400_000;

export const BILLING_HORIZON_AT = Date.UTC(2200, 0, 1);

/** Maximum interval count of each unit, about ten years. */
export const INTERVAL_COUNT_MAX: Readonly<Record<IntervalUnit, number>> = {
  DAY: 3650,
  WEEK: 520,
  MONTH: 120,
  YEAR: 10,
};

export const CYCLE_COUNT_MAX = 1200;

const TRIAL_YEARS_MAX = 10;

/** Returns billing date `index` from the anchor, date 0. In a month too short for the anchor's day: its last day. */
export function cycleAt(
  anchorAt: number,
  unit: IntervalUnit,
  count: number,
  index: number,
): number {
  checkStep(anchorAt, count);
  invariant(Number.isSafeInteger(index) && index >= 0, 'the index of a date counts from 0');
  const days = fixedDays(unit);
  if (days !== undefined) return anchorAt + days * DAY_MS * count * index;

  const anchor = civilOf(anchorAt);
  const month = anchor.month + monthsOf(unit) * count * index;
  const firstAt = firstDayAt(month);
  const lastDay = (firstDayAt(month + 1) - firstAt) / DAY_MS;
  return firstAt + (Math.min(anchor.day, lastDay) - 1) * DAY_MS + anchor.timeOfDayMs;
}

/** Returns the smallest index whose date is strictly after `instant`. Takes constant time. */
export function firstIndexAfter(
  anchorAt: number,
  unit: IntervalUnit,
  count: number,
  instant: number,
): number {
  checkStep(anchorAt, count);
  invariant(Number.isSafeInteger(instant), 'an instant is a whole number of milliseconds');
  if (instant < anchorAt) return 0;
  const days = fixedDays(unit);
  if (days !== undefined) return Math.floor((instant - anchorAt) / (days * DAY_MS * count)) + 1;

  // `candidate` is the index of the last date whose month is not after the instant's month. The previous date
  // lies in an earlier month and the next date in a later month, so only date `candidate` is compared with
  // `instant`.
  const monthsAhead = civilOf(instant).month - civilOf(anchorAt).month;
  const candidate = Math.floor(monthsAhead / (monthsOf(unit) * count));
  return cycleAt(anchorAt, unit, count, candidate) > instant ? candidate : candidate + 1;
}

/** Returns the number of full years from `from` to `at`. */
export const fullYears = (from: number, at: number): number =>
  firstIndexAfter(from, 'YEAR', 1, at) - 1;

/** Returns the end of a trial of `count` units that begins at `atMs`; `atMs` if `count` is 0, no trial. */
export function addTrial(atMs: number, unit: IntervalUnit, count: number): number {
  return count === 0 ? atMs : cycleAt(atMs, unit, count, 1);
}

/** Returns the instant as ISO 8601 in UTC with milliseconds: `2026-01-31T00:00:00.000Z`. */
export function formatInstant(atMs: number): string {
  return new Date(atMs).toISOString();
}

export const INSTANT_PROBLEM = 'must be epoch milliseconds before the year 2200';

/** Seconds since 1970 from 2001-09-09 until 2286. As ms they are in the first 116 days of 1970, which no caller means. */
const SECONDS = { from: 1_000_000_000, to: 10_000_000_000 };

/** Returns why a caller's value is no instant, for example because it is in seconds; null if it is one. */
export function instantProblem(value: unknown): string | null {
  if (!isInstant(value)) return INSTANT_PROBLEM;
  const isInSeconds = value >= SECONDS.from && value < SECONDS.to;
  return isInSeconds ? 'must be epoch milliseconds, and looks like seconds' : null;
}

/** True for an integer that is an instant in epoch ms, from 1970 to the end of 2199. */
export function isInstant(value: unknown): value is number {
  return (
    typeof value === 'number' &&
    Number.isSafeInteger(value) &&
    value >= 0 &&
    value < BILLING_HORIZON_AT
  );
}

export function intervalCountProblem(unit: IntervalUnit, intervalCount: number): string | null {
  const max = INTERVAL_COUNT_MAX[unit];
  return isWholeWithin(intervalCount, 1, max)
    ? null
    : `must be an integer from 1 to ${max} for interval ${unit}`;
}

export function cycleCountProblem(cycleCount: number): string | null {
  return isWholeWithin(cycleCount, 1, CYCLE_COUNT_MAX)
    ? null
    : `must be an integer from 1 to ${CYCLE_COUNT_MAX}`;
}

export function trialProblem(startAt: number, unit: IntervalUnit, count: number): string | null {
  if (!Number.isSafeInteger(count) || count < 0) return 'must be an integer of at least 0';
  // Ten years are at most 3,660 of the shortest unit, a day. A larger count could exceed safe integers.
  const isShort =
    count <= TRIAL_YEARS_MAX * 366 &&
    addTrial(startAt, unit, count) <= addTrial(startAt, 'YEAR', TRIAL_YEARS_MAX);
  return isShort ? null : `must make a trial of at most ${TRIAL_YEARS_MAX} years`;
}

/** Returns why the last of `cycleCount` charges, the first at `firstAt`, would be due in 2200 or later; else null. */
export function horizonProblem(
  firstAt: number,
  unit: IntervalUnit,
  intervalCount: number,
  cycleCount: number,
): string | null {
  return cycleAt(firstAt, unit, intervalCount, cycleCount - 1) < BILLING_HORIZON_AT
    ? null
    : 'the last billing date must be before the year 2200';
}

export interface RequestedTerms {
  readonly interval: IntervalUnit;
  readonly intervalCount: number;
  readonly cycleCount: number;
  /** Absent: no trial, and `trialPeriodCount` is ignored. */
  readonly trialPeriodInterval?: IntervalUnit | undefined;
  readonly trialPeriodCount?: number | undefined;
}

/** A bound that one field breaks. `field` is its wire name. */
export interface TermsProblem {
  readonly field: 'intervalCount' | 'cycleCount' | 'trialPeriodCount';
  readonly message: string;
}

/** Returns every broken bound. The last billing date, a problem of `cycleCount`, is checked if all others hold. */
export function termsProblems(terms: RequestedTerms, startAt: number): TermsProblem[] {
  const { interval, intervalCount, cycleCount } = terms;
  const trialUnit = terms.trialPeriodInterval ?? 'DAY';
  const trialCount = terms.trialPeriodInterval === undefined ? 0 : (terms.trialPeriodCount ?? 0);

  const problems: TermsProblem[] = [];
  const report = (field: TermsProblem['field'], message: string | null): void => {
    if (message !== null) problems.push({ field, message });
  };
  report('intervalCount', intervalCountProblem(interval, intervalCount));
  report('cycleCount', cycleCountProblem(cycleCount));
  report('trialPeriodCount', trialProblem(startAt, trialUnit, trialCount));
  if (problems.length === 0) {
    const firstAt = addTrial(startAt, trialUnit, trialCount);
    report('cycleCount', horizonProblem(firstAt, interval, intervalCount, cycleCount));
  }
  return problems;
}

function checkStep(anchorAt: number, count: number): void {
  invariant(Number.isSafeInteger(anchorAt), 'an instant is a whole number of milliseconds');
  invariant(Number.isSafeInteger(count) && count >= 1, 'an interval count is at least 1');
}

function isWholeWithin(value: number, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && value >= min && value <= max;
}

/** Returns the days of a unit that always has the same length in UTC; undefined for the other units. */
function fixedDays(unit: IntervalUnit): number | undefined {
  if (unit === 'DAY') return 1;
  return unit === 'WEEK' ? 7 : undefined;
}

function monthsOf(unit: IntervalUnit): number {
  return unit === 'YEAR' ? 12 : 1;
}

/** `month` counts from 0, January 1970. */
interface Civil {
  readonly month: number;
  readonly day: number;
  readonly timeOfDayMs: number;
}

function civilOf(atMs: number): Civil {
  const date = new Date(atMs);
  const month = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
  const day = date.getUTCDate();
  return { month, day, timeOfDayMs: atMs - firstDayAt(month) - (day - 1) * DAY_MS };
}

function firstDayAt(month: number): number {
  return Date.UTC(1970, month, 1);
}
