import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { summaryLines } from '../../cli/import/print-summary.ts';
import { createTotals } from '../../cli/import/report.ts';
import { dateProblem, readImport } from '../../cli/import/fields.ts';

const at = (text: string): number => Date.parse(text);

/** A line of a monthly subscription whose anchor is 31 August 2026. */
const LINE = {
  importId: 'old-17',
  customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  amount: 1_999,
  currency: 'usd',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  cyclesCharged: 5,
  anchorDate: at('2026-08-31T10:00:00Z'),
  nextPaymentDate: at('2027-02-28T10:00:00Z'),
  gatewayCustomerId: 'cus_A1',
  gatewayMethodId: 'pm_B2',
};

const problemOf = (changes: object): string | null => {
  const reading = readImport(JSON.stringify({ ...LINE, ...changes }));
  return reading.kind === 'problem' ? reading.problem : null;
};

test('the total of a month is exact if the sum of its charges exceeds 2^53 [D-01]', () => {
  const reading = readImport(
    JSON.stringify({
      ...LINE,
      amount: 9_999_999_999_999,
      currency: 'IRR',
      cycleCount: 900,
      interval: 'DAY',
      anchorDate: LINE.nextPaymentDate,
      cyclesCharged: 899,
    }),
  );
  const totals = createTotals(at('2027-02-01T00:00:00Z'));
  for (let line = 0; line < 1_000; line += 1) {
    totals.add('ok', reading.kind === 'read' ? reading.given : null);
  }
  const printed = { commit: false, reportFile: 'report.jsonl', problems: [] };
  const text = summaryLines({ ...totals.summary(), notStarted: 0 }, printed).join('\n');
  expect(text).toContain('99999999999990.00 IRR');
});

describe('a line of an import', () => {
  test('is refused if it gives a member twice [D-10]', () => {
    const line = JSON.stringify(LINE).replace('"amount":1999', '"amount":1999,"amount":9900');
    expect(readImport(line)).toEqual({
      kind: 'problem',
      importId: 'old-17',
      problem: 'amount: is given twice',
    });
  });

  test('is read with its defaults and the index of its next date [D-05]', () => {
    expect(readImport(JSON.stringify(LINE))).toEqual({
      kind: 'read',
      given: {
        importId: 'old-17',
        subscription: {
          status: 'ACTIVE',
          terms: {
            amountMinor: 1_999,
            currency: 'USD',
            interval: 'MONTH',
            intervalCount: 1,
            cycleCount: 12,
          },
          cyclesCharged: 5,
          anchorAt: at('2026-08-31T10:00:00Z'),
          nextIndex: 6,
          currentPeriodEndAt: at('2027-02-28T10:00:00Z'),
        },
        nextPaymentAt: at('2027-02-28T10:00:00Z'),
        gatewayCustomerId: 'cus_A1',
        gatewayMethodId: 'cus_A1/pm_B2',
        order: {
          customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
          phoneNumberRequired: false,
        },
        terms: {
          amount: 1_999,
          currency: 'USD',
          interval: 'MONTH',
          intervalCount: 1,
          cycleCount: 12,
          cyclesCharged: 5,
          nextPaymentDate: at('2027-02-28T10:00:00Z'),
          anchorDate: at('2026-08-31T10:00:00Z'),
          currentPeriodEnd: at('2027-02-28T10:00:00Z'),
          status: 'ACTIVE',
          gatewayCustomerId: 'cus_A1',
          gatewayMethodId: 'pm_B2',
        },
      },
    });
  });

  test.for<[string, object, string]>([
    ['an amount of 1 USD', { amount: 100 }, 'amount: must be at least 101 in USD'],
    [
      'an amount as text',
      { amount: '1999' },
      'amount: must be an integer in the smallest currency unit',
    ],
    ['a missing id', { importId: undefined }, 'importId: is required'],
    ['an empty id', { importId: '' }, 'importId: must not be empty'],
    ['a currency that does not exist', { currency: 'XYZ' }, 'currency: '],
    ['a misspelled field', { anchorDat: 1 }, 'anchorDat: is not a field of an import'],
    [
      'a misspelled detail of the customer',
      { customerDetails: { emial: 'a@b.c' } },
      'customerDetails.emial: is not a field of an import',
    ],
    [
      'two wrong fields and a misspelled one',
      { amount: -1, interval: 'MONTHLY', cylces: 1 },
      'amount: must be at least 101 in USD; interval: must be one of DAY, WEEK, MONTH, YEAR; cylces: is not a field of an import',
    ],
    ['all cycles charged', { cyclesCharged: 12 }, 'cyclesCharged: must be less than cycleCount'],
    [
      'an interval of 121 months',
      { intervalCount: 121 },
      'intervalCount: must be an integer from 1 to 120 for interval MONTH',
    ],
    [
      'amounts whose sum is an unsafe integer',
      { amount: 9_000_000_000_000, currency: 'IRR', interval: 'DAY', cycleCount: 1_200 },
      'amount: must make a sum of all cycles of at most 9007199254740991; ' +
        'cycleCount: must make a sum of all cycles of at most 9007199254740991',
    ],
    ['1201 cycles', { cycleCount: 1_201 }, 'cycleCount: must be an integer from 1 to 1200'],
    [
      'a last date in 2200',
      { interval: 'YEAR', nextPaymentDate: at('2027-08-31T10:00:00Z'), cycleCount: 200 },
      'cycleCount: the last billing date must be before the year 2200',
    ],
    [
      'a next date outside the calendar',
      { nextPaymentDate: at('2027-02-27T10:00:00Z') },
      'nextPaymentDate: is not a date of the calendar of anchorDate; the nearest are ' +
        '1801389600000 (2027-01-31T10:00:00.000Z) and 1803808800000 (2027-02-28T10:00:00.000Z)',
    ],
    [
      'an anchor after the next date',
      { anchorDate: at('2027-03-31T10:00:00Z') },
      'nextPaymentDate: is not a date of the calendar of anchorDate; the nearest are 1806487200000 (2027-03-31T10:00:00.000Z)',
    ],
    [
      'a trial with paid cycles and another anchor',
      { status: 'TRIALING' },
      'cyclesCharged: must be 0 in TRIALING; anchorDate: must be nextPaymentDate or absent in TRIALING',
    ],
    [
      'a status that cannot be imported',
      { status: 'UNPAID' },
      'status: must be one of ACTIVE, TRIALING',
    ],
    [
      'a method id with a slash',
      { gatewayMethodId: 'a/b' },
      'gatewayMethodId: must not be empty or contain spaces or slashes',
    ],
  ])('is refused for %s [D-06]', ([, changes, message]) => {
    expect(problemOf(changes)).toContain(message);
  });

  test('is refused when its next date or the end of its period is no longer in the future [D-15]', () => {
    const reading = readImport(
      JSON.stringify({ ...LINE, currentPeriodEnd: at('2027-02-01T00:00:00Z') }),
    );
    if (reading.kind !== 'read') throw new Error(reading.problem);
    expect(dateProblem(reading.given, at('2027-01-31T00:00:00Z'))).toBeNull();
    expect(dateProblem(reading.given, at('2027-02-01T00:00:00Z'))).toBe(
      'currentPeriodEnd: 2027-02-01T00:00:00.000Z is not in the future',
    );
    expect(dateProblem(reading.given, at('2027-03-01T00:00:00Z'))).toBe(
      'nextPaymentDate: 2027-02-28T10:00:00.000Z is not in the future; currentPeriodEnd: 2027-02-01T00:00:00.000Z is not in the future',
    );
  });

  test('is valid when it is the example in docs/importing.md', () => {
    const [, example = ''] =
      /```json\n(.*)\n```/.exec(readFileSync('docs/importing.md', 'utf8')) ?? [];
    expect(readImport(example)).toMatchObject({ kind: 'read', given: { importId: 'old-4711' } });
  });
});
