import { MINIMUMS, TABLE_DATE } from './currency-table.ts';

/** A row of the currency table. Amounts are minor units. */
export interface Currency {
  readonly code: string;
  /** Digits after the decimal point: one unit is 10^exponent minor units. */
  readonly exponent: number;
  /** Minimum amount that may be charged; 0 while the row is not active. */
  readonly minimum: number;
  /** Maximum amount that may be charged; 0 while the row is not active. */
  readonly maximum: number;
  readonly active: boolean;
  /** The date of the row's facts, `YYYY-MM-DD`. */
  readonly asOf: string;
}

/** True for a value of the type {@link Currency}, for example from JSON. Does not look up the code. */
export function isCurrencyRow(value: unknown): value is Currency {
  if (typeof value !== 'object' || value === null) return false;
  const row: Partial<Record<keyof Currency, unknown>> = value;
  const isCount = (member: unknown): boolean => Number.isSafeInteger(member) && Number(member) >= 0;
  return (
    [row.code, row.asOf].every((member) => typeof member === 'string') &&
    [row.exponent, row.minimum, row.maximum].every(isCount) &&
    typeof row.active === 'boolean'
  );
}

export type CurrencyTable = ReadonlyMap<string, Currency>;

export const CURRENCIES: CurrencyTable = new Map(
  Object.entries(MINIMUMS).flatMap(([exponent, minimums]) =>
    Array.from(minimums.matchAll(/([A-Z]{3}) (\d+)/g), ([, code = '', digits]) => {
      const minimum = Number(digits);
      const active = minimum > 0;
      const maximum = active ? maximumOf(minimum) : 0;
      const row = { code, exponent: Number(exponent), minimum, maximum, active, asOf: TABLE_DATE };
      return [code, row] as const;
    }),
  ),
);

/** Returns 99,999,999, with more nines until it is worth 10,000 USD. `minimum` is the least amount above 1 USD. */
function maximumOf(minimum: number): number {
  let maximum = 99_999_999;
  while (maximum < 10_000 * (minimum - 1)) maximum = maximum * 10 + 9;
  return maximum;
}

/** Returns the row of an upper-case code, active or not. Undefined when the table has no such code. */
export function currencyOf(code: string, table: CurrencyTable = CURRENCIES): Currency | undefined {
  return table.get(code);
}

/** Returns a request's currency as an upper-case code. Null when it is not three letters. */
export function normaliseCurrency(input: unknown): string | null {
  return typeof input === 'string' && /^[A-Za-z]{3}$/.test(input) ? input.toUpperCase() : null;
}

export function currencyProblem(code: string, table: CurrencyTable = CURRENCIES): string | null {
  return table.get(code)?.active === true ? null : 'must be a supported ISO 4217 currency code';
}

/** The purpose of an amount: a billing cycle, or a charge outside the cycles, which has a lower minimum. */
export type AmountUse = 'cycle' | 'charge';

/**
 * Returns why an amount in minor units cannot be charged; null if it can. The text follows the name of the amount's
 * field. `code` is upper-case.
 */
export function amountProblem(
  amountMinor: unknown,
  code: string,
  use: AmountUse = 'cycle',
  table: CurrencyTable = CURRENCIES,
): string | null {
  if (typeof amountMinor !== 'number' || !Number.isSafeInteger(amountMinor)) {
    return 'must be an integer in the smallest currency unit';
  }
  const row = currencyOf(code, table);
  if (row === undefined || !row.active) return 'must be in a supported currency';
  // Every minimum is at least 1, so this check also refuses negative amounts, 0 and -0.
  const minimum = use === 'cycle' ? row.minimum : chargeMinimum(row);
  if (amountMinor < minimum) return `must be at least ${minimum} in ${code}`;
  if (amountMinor > row.maximum) return `must be at most ${row.maximum} in ${code}`;
  return null;
}

/** Returns the least amount of a charge outside the cycles: 0.50 USD or its equivalent. */
export function chargeMinimum({ minimum }: Currency): number {
  return Math.max(1, Math.ceil((minimum - 1) / 2));
}

/**
 * Returns a copy of the table with `minimum`, `maximum`, `active` and `asOf` of the codes in `json`. Exponents cannot
 * change, because stored amounts would change their meaning.
 * @throws Error naming the code and the field.
 */
export function withOverrides(table: CurrencyTable, json: unknown): CurrencyTable {
  const result = new Map(table);
  for (const [code, change] of Object.entries(asObject(json, 'the file'))) {
    const currency = table.get(code);
    if (currency === undefined) throw overrideError(code, 'is not in the currency table');
    result.set(code, overridden(currency, asObject(change, code)));
  }
  return result;
}

function overridden(currency: Currency, change: Record<string, unknown>): Currency {
  const { code } = currency;
  const known = new Set(['minimum', 'maximum', 'active', 'asOf']);
  const unknown = Object.keys(change).find((field) => !known.has(field));
  if (unknown !== undefined) throw overrideError(`${code}.${unknown}`, 'cannot be overridden');

  const { minimum, maximum, active, asOf } = { ...currency, ...change };
  if (typeof active !== 'boolean') throw overrideError(`${code}.active`, 'must be true or false');
  if (typeof asOf !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(asOf)) {
    throw overrideError(`${code}.asOf`, 'must be a date, YYYY-MM-DD');
  }
  if (!active) return { ...currency, minimum: 0, maximum: 0, active, asOf };
  if (!isLimit(minimum)) throw overrideError(`${code}.minimum`, 'must be a positive integer');
  if (!isLimit(maximum) || maximum < minimum) {
    throw overrideError(`${code}.maximum`, 'must be an integer of at least the minimum');
  }
  return { ...currency, minimum, maximum, active, asOf };
}

function isLimit(value: unknown): value is number {
  // The cast is needed, because `isSafeInteger` is no type guard.
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function asObject(value: unknown, where: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw overrideError(where, 'must be a JSON object');
  }
  return value as Record<string, unknown>; // any JSON object is a record of unknowns
}

function overrideError(where: string, problem: string): Error {
  return new Error(`Currency overrides: ${where} ${problem}`);
}
