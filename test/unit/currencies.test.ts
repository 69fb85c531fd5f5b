import * as dinero from 'dinero.js/currencies';
import { describe, expect, it } from 'vitest';
import {
  amountProblem,
  CURRENCIES,
  currencyOf,
  currencyProblem,
  normaliseCurrency,
  withOverrides,
} from '../../domain/currencies.ts';

const rows = [...CURRENCIES.values()];
const active = rows.filter((row) => row.active);

/** dinero.js counts these two currencies in fifths. ISO 4217 gives each of them 2 digits. */
const FIFTHS = ['MGA', 'MRU'];

/** dinero.js has this code, which is only an accounting unit of central banks. The table does not have it. */
const NOT_IN_TABLE = ['XAD'];

/** These codes of dinero.js are inactive here, because they are retired or only units of account. */
const NOT_CHARGEABLE = ['BGN', 'BOV', 'CHE', 'CHW', 'CLF', 'COU', 'MXV', 'USN', 'UYI', 'UYW'];

describe('currency table', () => {
  it('has every code of dinero.js except XAD [D-02]', () => {
    const theirs = Object.keys(dinero).filter((code) => !NOT_IN_TABLE.includes(code));
    expect([...active.map((row) => row.code), ...NOT_CHARGEABLE].toSorted()).toEqual(
      theirs.toSorted(),
    );
    expect(NOT_CHARGEABLE.map((code) => currencyOf(code)?.active)).toEqual(
      NOT_CHARGEABLE.map(() => false),
    );
  });

  it('has the same exponents as dinero.js, except for the two currencies counted in fifths [D-02]', () => {
    const different = Object.values(dinero)
      .filter(({ code }) => !NOT_IN_TABLE.includes(code))
      .filter(({ code, base, exponent }) => {
        return base !== 10 || exponent !== currencyOf(code)?.exponent;
      });
    expect(different.map(({ code }) => code)).toEqual(FIFTHS);
    expect(FIFTHS.map((code) => currencyOf(code)?.exponent)).toEqual([2, 2]);
  });

  it.each(['HRK', 'BGN', 'ANG', 'CUC', 'SLL', 'ZWL', 'VEF', 'LTL'])(
    'lists the retired %s as inactive [D-02]',
    (code) => {
      expect(currencyOf(code)).toMatchObject({ code, active: false, minimum: 0, maximum: 0 });
      expect(currencyProblem(code)).toBe('must be a supported ISO 4217 currency code');
    },
  );

  it.each(['EUR', 'BAM', 'XCG', 'SLE', 'ZWG', 'VES', 'BYN', 'MRU', 'STN'])(
    'lists %s, which replaced a retired code, as active [D-02]',
    (code) => {
      expect(currencyProblem(code)).toBeNull();
    },
  );

  it.each(['XAU', 'XXX', 'XTS', 'XDR', 'ZZZ', 'usd', '', 'toString'])(
    'has no row for "%s" [D-02, IF-1]',
    (code) => {
      expect(currencyOf(code)).toBeUndefined();
      expect(currencyProblem(code)).not.toBeNull();
    },
  );

  it('has one row for each of 155 active and 23 inactive codes, with a date [D-02]', () => {
    expect([active.length, rows.length - active.length]).toEqual([155, 23]);
    expect(new Set(rows.map((row) => row.code)).size).toBe(rows.length);
    for (const row of rows) {
      expect(row.code).toMatch(/^[A-Z]{3}$/);
      expect(row.asOf).toBe('2026-09-29');
    }
  });
});

describe('amount limits', () => {
  it.each([
    // The rate for 1 USD on 2026-09-29, then the minimum: floor(rate × 10^exponent) + 1.
    ['USD', 1, 101],
    ['AWG', 1.79, 180],
    ['EUR', 0.88022588, 89],
    ['GBP', 0.75538854, 76],
    ['JPY', 157.47729333, 158],
    ['KWD', 0.30871186, 309],
    ['HUF', 323.46181085, 32_347],
    ['ISK', 120.56410863, 121],
    ['UGX', 3914.66823395, 3_915],
  ])('for %s, at a rate of %d to 1 USD, have the minimum %i [D-03]', (code, _rate, minimum) => {
    expect(currencyOf(code)?.minimum).toBe(minimum);
  });

  it('have the maximum 99,999,999 minor units, or more nines in a currency where this amount is worth less than 10,000 USD [D-03]', () => {
    expect(['USD', 'EUR', 'JPY', 'INR', 'KWD'].map((code) => currencyOf(code)?.maximum)).toEqual(
      Array(5).fill(99_999_999),
    );
    // 10,000 USD are 180,163,431.07 IDR (18,016,343,107 minor units) or 259,477,680 VND.
    expect(currencyOf('IDR')?.maximum).toBe(99_999_999_999);
    expect(currencyOf('VND')?.maximum).toBe(999_999_999);
  });

  it('allow 10,000 USD in every active currency, as safe integers [D-03]', () => {
    for (const row of active) {
      // The minimum is at most one minor unit above the value of 1 USD.
      expect(row.maximum, row.code).toBeGreaterThanOrEqual((row.minimum - 1) * 10_000);
      expect(Number.isSafeInteger(row.maximum), row.code).toBe(true);
      expect(row.minimum, row.code).toBeGreaterThan(0);
    }
  });
});

it.each([
  ['USD', 50],
  ['JPY', 79],
  ['KWD', 154],
])('the minimum in %s for a charge outside a billing cycle is %i [D-03]', (code, least) => {
  expect(amountProblem(least, code, 'charge')).toBeNull();
  expect(amountProblem(least - 1, code, 'charge')).toBe(`must be at least ${least} in ${code}`);
});

describe('amountProblem', () => {
  it('accepts 1.01 USD and refuses 1.00 USD [D-03, IF-4]', () => {
    expect(amountProblem(101, 'USD')).toBeNull();
    expect(amountProblem(100, 'USD')).toBe('must be at least 101 in USD');
  });

  it.each([0, -0, -101])('refuses %d as too little [D-01]', (amountMinor) => {
    expect(amountProblem(amountMinor, 'USD')).toBe('must be at least 101 in USD');
  });

  it('accepts 999,999.99 USD and refuses 1,000,000.00 USD [D-03]', () => {
    expect(amountProblem(99_999_999, 'USD')).toBeNull();
    expect(amountProblem(100_000_000, 'USD')).toBe('must be at most 99999999 in USD');
  });

  it.each([
    // Reference rates for 1 USD: 0.88022588 EUR, 157.47729333 JPY, 0.30871186 KWD, 25947.76804973 VND.
    ['EUR', 88, 89],
    ['JPY', 157, 158],
    ['KWD', 308, 309],
    ['VND', 25_947, 25_948],
  ])(
    'refuses the %s value of 1 USD, %i, and accepts one unit more [D-03, IF-4]',
    (currency, dollar, minimum) => {
      expect(amountProblem(dollar, currency)).toBe(`must be at least ${minimum} in ${currency}`);
      expect(amountProblem(minimum, currency)).toBeNull();
    },
  );

  it.each([101.5, Number.MAX_SAFE_INTEGER + 1, Number.NaN, '101', null, undefined])(
    'refuses %o, which is no safe integer, before it checks limits [D-01]',
    (amountMinor) => {
      expect(amountProblem(amountMinor, 'USD')).toBe(
        'must be an integer in the smallest currency unit',
      );
    },
  );

  it.each(['HRK', 'CLF', 'XAU', 'ZZZ', 'usd', 'toString'])(
    'refuses every amount in %s, because the table has no active row for it [D-02]',
    (currency) => {
      expect(amountProblem(0, currency)).toBe('must be in a supported currency');
      expect(amountProblem(5000, currency)).toBe('must be in a supported currency');
    },
  );

  it('applies the limits of the given table [D-03]', () => {
    const table = withOverrides(CURRENCIES, { USD: { minimum: 500, maximum: 600 } });
    expect(amountProblem(499, 'USD', 'cycle', table)).toBe('must be at least 500 in USD');
    expect(amountProblem(500, 'USD', 'cycle', table)).toBeNull();
    expect(amountProblem(601, 'USD', 'cycle', table)).toBe('must be at most 600 in USD');
  });
});

describe('normaliseCurrency', () => {
  it.each([
    ['usd', 'USD'],
    ['UsD', 'USD'],
    ['EUR', 'EUR'],
    ['zzz', 'ZZZ'],
  ])('reads %s as %s [D-02]', (input, code) => {
    expect(normaliseCurrency(input)).toBe(code);
  });

  it.each(['', 'US', 'USDT', ' USD', 'USD\n', 'U5D', 'ıso', 'ßß', 840, null, undefined, ['USD']])(
    'refuses %j [D-02]',
    (input) => {
      expect(normaliseCurrency(input)).toBeNull();
    },
  );
});

describe('withOverrides', () => {
  it('returns a table with the overrides and does not change the original [D-03]', () => {
    const table = withOverrides(CURRENCIES, {
      EUR: { minimum: 95, asOf: '2026-11-01' },
      JPY: { active: false },
      CLF: { minimum: 300, maximum: 9_999_999, active: true },
    });
    expect(table.get('EUR')).toEqual({
      code: 'EUR',
      exponent: 2,
      minimum: 95,
      maximum: 99_999_999,
      active: true,
      asOf: '2026-11-01',
    });
    expect(table.get('JPY')).toMatchObject({ active: false, minimum: 0, maximum: 0 });
    expect(table.get('CLF')).toMatchObject({ active: true, minimum: 300, exponent: 4 });
    expect(table.get('USD')).toBe(CURRENCIES.get('USD'));
    expect(table.size).toBe(CURRENCIES.size);
    expect(CURRENCIES.get('EUR')?.minimum).toBe(89);
  });

  it.each([
    ['the file must be a JSON object', []],
    ['the file must be a JSON object', null],
    ['EUR must be a JSON object', { EUR: 95 }],
    ['ZZZ is not in the currency table', { ZZZ: { minimum: 1 } }],
    ['eur is not in the currency table', { eur: { minimum: 95 } }],
    ['EUR.exponent cannot be overridden', { EUR: { exponent: 3 } }],
    ['EUR.minimun cannot be overridden', { EUR: { minimun: 95 } }],
    ['EUR.minimum must be a positive integer', { EUR: { minimum: 0 } }],
    ['EUR.minimum must be a positive integer', { EUR: { minimum: '95' } }],
    ['EUR.minimum must be a positive integer', { EUR: { minimum: null } }],
    ['EUR.maximum must be an integer of at least the minimum', { EUR: { maximum: 88 } }],
    ['EUR.maximum must be an integer of at least the minimum', { EUR: { maximum: 1e300 } }],
    ['EUR.active must be true or false', { EUR: { active: 'no' } }],
    ['EUR.asOf must be a date, YYYY-MM-DD', { EUR: { asOf: 'today' } }],
    ['CLF.minimum must be a positive integer', { CLF: { active: true } }],
  ])('refuses an invalid file with the message: %s [D-03]', (message, json) => {
    expect(() => withOverrides(CURRENCIES, json)).toThrow(`Currency overrides: ${message}`);
  });
});
