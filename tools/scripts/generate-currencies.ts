/**
 * Renews the limits in domain/currency-table.ts: node --import tsx tools/scripts/generate-currencies.ts <rates.json>
 * The file is `v1/currencies/usd.min.json` of the npm package `@fawazahmed0/currency-api` (CC0), unpacked by hand.
 */

import { readFileSync, writeFileSync } from 'node:fs';

const DEFAULT_MAXIMUM = 99_999_999n;
const MAXIMUM_WORTH_USD = 10_000n;
/** Rates are integers in units of 10^-12, so no multiplication rounds. */
const RATE_DIGITS = 12;

function limitsOf(code: string, exponent: number, rate: unknown): string {
  if (typeof rate !== 'number' || !(rate > 0)) throw new Error(`No rate for ${code}`);
  const unit = 10n ** BigInt(RATE_DIGITS);
  const dollar = BigInt(rate.toFixed(RATE_DIGITS).replace('.', '')) * 10n ** BigInt(exponent);
  const wanted = (MAXIMUM_WORTH_USD * dollar) / unit;
  let maximum = DEFAULT_MAXIMUM;
  while (maximum < wanted) maximum = maximum * 10n + 9n;
  if (maximum > BigInt(Number.MAX_SAFE_INTEGER)) throw new Error(`${code} needs unsafe integers`);
  return `${grouped(dollar / unit + 1n)}, ${grouped(maximum)}`;
}

function grouped(value: bigint): string {
  return value.toString().replaceAll(/\B(?=(\d{3})+$)/g, '_');
}

const [ratesPath] = process.argv.slice(2);
if (ratesPath === undefined) throw new Error('Usage: generate-currencies.ts <rates.json>');
const { date, usd } = JSON.parse(readFileSync(ratesPath, 'utf8')) as {
  date: string;
  usd: Record<string, unknown>;
};
if (!/^\d{4}-\d\d-\d\d$/.test(date)) throw new Error(`Not a date: ${date}`);

const table = new URL('../../domain/currency-table.ts', import.meta.url);
const row = /\['([A-Z]{3})', (.+), (\d), [\d_]+, [\d_]+\]/g;
const renewed = readFileSync(table, 'utf8')
  .replace(/(?<=TABLE_DATE = ')[\d-]+/, date)
  .replaceAll(row, (_, code: string, name: string, exponent: string) => {
    const limits = limitsOf(code, Number(exponent), usd[code.toLowerCase()]);
    return `['${code}', ${name}, ${exponent}, ${limits}]`;
  });
writeFileSync(table, renewed);
