import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { instant, instantText } from '../../api/fields.ts';
import {
  addTrial,
  BILLING_HORIZON_AT,
  cycleAt,
  cycleCountProblem,
  firstIndexAfter,
  formatInstant,
  horizonProblem,
  INTERVAL_COUNT_MAX,
  INTERVAL_UNITS,
  intervalCountProblem,
  type IntervalUnit,
  instantProblem,
  isInstant,
  termsProblems,
  trialProblem,
} from '../../domain/calendar.ts';

const at = (iso: string): number => Date.parse(iso);

function dates(anchor: string, unit: IntervalUnit, count: number, length: number): string {
  return Array.from({ length }, (_, index) =>
    formatInstant(cycleAt(at(anchor), unit, count, index)).slice(0, 10),
  ).join(' ');
}

/** An anchor between 1970 and 2190. About half of the anchors lie on day 28 to 31 of a month. */
const anchors = fc.oneof(
  fc.integer({ min: 0, max: Date.UTC(2190, 0, 1) }),
  fc
    .tuple(
      fc.integer({ min: 1970, max: 2189 }),
      fc.integer({ min: 0, max: 11 }),
      fc.integer({ min: 28, max: 31 }),
      fc.integer({ min: 0, max: 86_399_999 }),
    )
    .map(([year, month, day, ms]) => Date.UTC(year, month, day) + ms),
);

const steps = fc.constantFrom(...INTERVAL_UNITS).chain((unit) =>
  fc.record({
    unit: fc.constant(unit),
    count: fc.integer({ min: 1, max: INTERVAL_COUNT_MAX[unit] }),
  }),
);

function oracle(anchorAt: number, unit: IntervalUnit, count: number, index: number): number {
  const amount = count * index;
  const duration = {
    DAY: { days: amount },
    WEEK: { weeks: amount },
    MONTH: { months: amount },
    YEAR: { years: amount },
  }[unit];
  return Temporal.Instant.fromEpochMilliseconds(anchorAt)
    .toZonedDateTimeISO('UTC')
    .add(duration, { overflow: 'constrain' }).epochMilliseconds;
}

describe('cycleAt', () => {
  it('bills a 31 January anchor on the last day of short months and on the 31st of other months [D-05]', () => {
    expect(dates('2027-01-31T09:30:00Z', 'MONTH', 1, 14)).toBe(
      '2027-01-31 2027-02-28 2027-03-31 2027-04-30 2027-05-31 2027-06-30 2027-07-31 ' +
        '2027-08-31 2027-09-30 2027-10-31 2027-11-30 2027-12-31 2028-01-31 2028-02-29',
    );
  });

  it('bills a yearly 29 February anchor on 28 February in a common year [D-05]', () => {
    expect(dates('2024-02-29T00:00:00Z', 'YEAR', 1, 5)).toBe(
      '2024-02-29 2025-02-28 2026-02-28 2027-02-28 2028-02-29',
    );
  });

  it('equals the result of the TC39 Temporal API on 20,000 random inputs [D-05]', () => {
    const index = fc.integer({ min: 0, max: 1199 });
    fc.assert(
      fc.property(
        anchors,
        steps,
        index,
        (anchorAt, { unit, count }, k) =>
          cycleAt(anchorAt, unit, count, k) === oracle(anchorAt, unit, count, k),
      ),
      { numRuns: 20_000 },
    );
  });

  it.each([
    ['a fractional anchor', 0.5, 1, 0],
    ['a count of 0', 0, 0, 1],
    ['a fractional count', 0, 1.5, 1],
    ['a negative index', 0, 1, -1],
  ])('refuses %s [D-05]', (_name, anchorAt, count, index) => {
    expect(() => cycleAt(anchorAt, 'MONTH', count, index)).toThrow('Invariant violated');
  });
});

describe('firstIndexAfter', () => {
  it('equals the result of a linear search from index 0 [D-05]', () => {
    const search = (anchorAt: number, unit: IntervalUnit, count: number, instant: number) => {
      let index = 0;
      while (cycleAt(anchorAt, unit, count, index) <= instant) index += 1;
      return index;
    };
    // Instants within 1 ms of a date, to find off-by-one errors, and instants within 40 days of a date.
    const offset = fc.oneof(
      fc.constantFrom(-1, 0, 1),
      fc.integer({ min: -40 * 86_400_000, max: 40 * 86_400_000 }),
    );
    fc.assert(
      fc.property(
        anchors,
        steps,
        fc.integer({ min: 0, max: 40 }),
        offset,
        (anchorAt, { unit, count }, k, ms) => {
          const instant = cycleAt(anchorAt, unit, count, k) + ms;
          return (
            firstIndexAfter(anchorAt, unit, count, instant) ===
            search(anchorAt, unit, count, instant)
          );
        },
      ),
      { numRuns: 20_000 },
    );
  });

  it('finds the index of a daily date after ten thousand years [D-05]', () => {
    const farAt = 10_000 * 365 * 86_400_000;
    expect(firstIndexAfter(0, 'DAY', 1, farAt)).toBe(3_650_001);
  });
});

describe('addTrial', () => {
  it.each([
    ['2026-01-31T10:00:00.000Z', 'MONTH', 1, '2026-02-28T10:00:00.000Z'],
    ['2028-02-29T10:00:00.000Z', 'YEAR', 1, '2029-02-28T10:00:00.000Z'],
    ['2026-11-20T10:00:00.000Z', 'DAY', 7, '2026-11-27T10:00:00.000Z'],
    ['2026-11-20T10:00:00.000Z', 'WEEK', 2, '2026-12-04T10:00:00.000Z'],
    ['2026-11-20T10:00:00.000Z', 'WEEK', 0, '2026-11-20T10:00:00.000Z'],
  ] as const)(
    'for a trial that starts at %s and lasts %s × %i returns the end %s [D-05]',
    (startIso, unit, count, endIso) => {
      expect(formatInstant(addTrial(at(startIso), unit, count))).toBe(endIso);
    },
  );
});

describe('instants', () => {
  it('are written with milliseconds and Z [D-04]', () => {
    expect(formatInstant(0)).toBe('1970-01-01T00:00:00.000Z');
    expect(formatInstant(1_769_817_600_001)).toBe('2026-01-31T00:00:00.001Z');
  });

  it('are whole milliseconds from the start of 1970 to the end of 2199 [D-04]', () => {
    expect(BILLING_HORIZON_AT).toBe(at('2200-01-01T00:00:00Z'));
    const named = [0, BILLING_HORIZON_AT - 1, -1, 1.5, BILLING_HORIZON_AT, Number.NaN, '0', null];
    expect(named.map(isInstant)).toEqual([true, true, false, false, false, false, false, false]);
  });

  it('names an instant that a caller gives in seconds [D-04]', () => {
    const seconds = 'must be epoch milliseconds, and looks like seconds';
    const given = [0, 999_999_999, 1_000_000_000, 1_798_761_600, 9_999_999_999, 10_000_000_000];
    expect(given.map(instantProblem)).toEqual([null, null, seconds, seconds, seconds, null]);
    expect(instantProblem('1798761600')).toBe('must be epoch milliseconds before the year 2200');
    const messages = (schema: z.ZodType, value: unknown) =>
      schema.safeParse(value).error?.issues.map(({ message }) => message);
    expect(messages(instant, 1_798_761_600)).toEqual([seconds]);
    expect(messages(instantText, '1798761600')).toEqual([seconds]);
    expect(messages(instantText, '2026-06-01')).toEqual([
      'must be epoch milliseconds before the year 2200',
    ]);
    expect(messages(instant, undefined)).toEqual(['is required']);
    expect(messages(instant, 1_798_761_600_000)).toBeUndefined();
    expect(instantText.parse('1798761600000')).toBe(1_798_761_600_000);
  });
});

describe('the limits of the terms', () => {
  const startAt = at('2026-11-20T00:00:00Z');

  it.each([
    ['DAY', 3650],
    ['WEEK', 520],
    ['MONTH', 120],
    ['YEAR', 10],
  ] as const)('allow the interval %s with a count from 1 to %i [D-06]', (unit, max) => {
    const message = `must be an integer from 1 to ${max} for interval ${unit}`;
    expect(intervalCountProblem(unit, 1)).toBeNull();
    expect(intervalCountProblem(unit, max)).toBeNull();
    expect(intervalCountProblem(unit, max + 1)).toBe(message);
    expect(intervalCountProblem(unit, 0)).toBe(message);
    expect(intervalCountProblem(unit, 1.5)).toBe(message);
  });

  it('allow 1 to 1200 cycles [D-06]', () => {
    expect([1, 1200].map(cycleCountProblem)).toEqual([null, null]);
    expect([0, 1201, 2.5].map(cycleCountProblem)).toEqual(
      Array(3).fill('must be an integer from 1 to 1200'),
    );
  });

  it.each([
    // Ten years from 20 November 2026 are 3,653 days, because they include three leap days.
    ['DAY', 3653],
    ['WEEK', 521],
    ['MONTH', 120],
    ['YEAR', 10],
  ] as const)('allow a trial of ten years, in %s at most %i [D-06]', (unit, max) => {
    expect(trialProblem(startAt, unit, 0)).toBeNull();
    expect(trialProblem(startAt, unit, max)).toBeNull();
    expect(trialProblem(startAt, unit, max + 1)).toBe('must make a trial of at most 10 years');
    expect(trialProblem(startAt, unit, Number.MAX_SAFE_INTEGER)).not.toBeNull();
    expect(trialProblem(startAt, unit, -1)).toBe('must be an integer of at least 0');
  });

  it('require the last billing date to be before the year 2200 [D-06]', () => {
    // From 20 November 2026 the 174th yearly date is 20 November 2199.
    expect(horizonProblem(startAt, 'YEAR', 1, 174)).toBeNull();
    expect(horizonProblem(startAt, 'YEAR', 1, 175)).toBe(
      'the last billing date must be before the year 2200',
    );
    expect(horizonProblem(BILLING_HORIZON_AT - 1, 'DAY', 1, 1)).toBeNull();
    expect(horizonProblem(BILLING_HORIZON_AT, 'DAY', 1, 1)).not.toBeNull();
  });

  it('are all checked in one call, and each problem names its field [D-06]', () => {
    const broken = {
      interval: 'MONTH',
      intervalCount: 121,
      cycleCount: 0,
      trialPeriodInterval: 'YEAR',
      trialPeriodCount: 11,
    } as const;
    expect(termsProblems(broken, startAt)).toEqual([
      { field: 'intervalCount', message: 'must be an integer from 1 to 120 for interval MONTH' },
      { field: 'cycleCount', message: 'must be an integer from 1 to 1200' },
      { field: 'trialPeriodCount', message: 'must make a trial of at most 10 years' },
    ]);
  });

  it('count the last billing date from the end of the trial [D-06]', () => {
    const terms = { interval: 'YEAR', intervalCount: 1, cycleCount: 174 } as const;
    const trial = { trialPeriodInterval: 'MONTH', trialPeriodCount: 2 } as const;
    expect(termsProblems(terms, startAt)).toEqual([]);
    expect(termsProblems({ ...terms, ...trial }, startAt)).toEqual([
      { field: 'cycleCount', message: 'the last billing date must be before the year 2200' },
    ]);
    expect(termsProblems({ ...terms, ...trial, trialPeriodCount: 0 }, startAt)).toEqual([]);
  });

  it('accept terms exactly when the last billing date is before 2200 [D-06]', () => {
    const cycles = fc.integer({ min: 1, max: 1200 });
    fc.assert(
      fc.property(anchors, steps, cycles, (anchorAt, { unit, count }, cycleCount) => {
        const terms = { interval: unit, intervalCount: count, cycleCount };
        const lastYear = Temporal.Instant.fromEpochMilliseconds(
          oracle(anchorAt, unit, count, cycleCount - 1),
        ).toZonedDateTimeISO('UTC').year;
        return (termsProblems(terms, anchorAt).length === 0) === lastYear < 2200;
      }),
      { numRuns: 20_000 },
    );
  });
});
