/**
 * Renews the minimums in domain/currency-table.ts: node --import tsx tools/scripts/generate-currencies.ts <rates.json>
 * The file is `v1/currencies/usd.min.json` of the npm package `@fawazahmed0/currency-api` (CC0), unpacked by hand.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import { currencyOf } from '../../domain/currencies.ts';

/** Rates are integers in units of 10^-12, so no multiplication rounds. */
const RATE_DIGITS = 12;

function minimumOf(code: string, rate: unknown): bigint {
  const exponent = currencyOf(code)?.exponent;
  if (exponent === undefined || typeof rate !== 'number' || !(rate > 0)) {
    throw new Error(`No rate for ${code}`);
  }
  const dollar = BigInt(rate.toFixed(RATE_DIGITS).replace('.', '')) * 10n ** BigInt(exponent);
  return dollar / 10n ** BigInt(RATE_DIGITS) + 1n;
}

const [ratesPath] = process.argv.slice(2);
if (ratesPath === undefined) throw new Error('Usage: generate-currencies.ts <rates.json>');
const { date, usd } = JSON.parse(readFileSync(ratesPath, 'utf8')) as {
  date: string;
  usd: Record<string, unknown>;
};
if (!/^\d{4}-\d\d-\d\d$/.test(date)) throw new Error(`Not a date: ${date}`);

const table = new URL('../../domain/currency-table.ts', import.meta.url);
const renewed = readFileSync(table, 'utf8')
  .replace(/(?<=TABLE_DATE = ')[\d-]+/, date)
  .replaceAll(/\b([A-Z]{3}) [1-9]\d*/g, (_, code: string) => {
    return `${code} ${minimumOf(code, usd[code.toLowerCase()])}`;
  });
writeFileSync(table, renewed);
