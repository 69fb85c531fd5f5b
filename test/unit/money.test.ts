import { describe, expect, it } from 'vitest';
import { formatAmount, isAmountMinor } from '../../domain/money.ts';

describe('isAmountMinor', () => {
  it.each([0, 1, 101, Number.MAX_SAFE_INTEGER])('accepts %d [D-01, IF-1]', (value) => {
    expect(isAmountMinor(value)).toBe(true);
  });

  it.each([
    ['a negative number', -1],
    ['minus zero', -0],
    ['a fraction', 100.5],
    ['an unsafe integer', Number.MAX_SAFE_INTEGER + 1],
    ['NaN', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a string', '101'],
    ['a bigint', 101n],
    ['null', null],
  ])('refuses %s [D-01]', (_name, value) => {
    expect(isAmountMinor(value)).toBe(false);
  });
});

describe('formatAmount', () => {
  it.each([
    [1234, 'USD', '12.34 USD'],
    [0, 'USD', '0.00 USD'],
    [5, 'USD', '0.05 USD'],
    [100, 'EUR', '1.00 EUR'],
    [500, 'JPY', '500 JPY'],
    [0, 'JPY', '0 JPY'],
    [1, 'KWD', '0.001 KWD'],
    [12_345, 'KWD', '12.345 KWD'],
    [12_345, 'CLF', '1.2345 CLF'],
    [99, 'HRK', '0.99 HRK'],
    [Number.MAX_SAFE_INTEGER, 'USD', '90071992547409.91 USD'],
  ])('writes %d %s as %s [D-02]', (amountMinor, currency, text) => {
    expect(formatAmount(amountMinor, currency)).toBe(text);
  });

  it('refuses an invalid amount and an unknown currency [D-01]', () => {
    expect(() => formatAmount(-1, 'USD')).toThrow('an amount is');
    expect(() => formatAmount(0.5, 'USD')).toThrow('an amount is');
    expect(() => formatAmount(1, 'ZZZ')).toThrow('is in the table');
  });
});
