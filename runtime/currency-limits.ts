import { readFileSync } from 'node:fs';
import { CURRENCIES, withOverrides } from '../domain/currencies.ts';
import type { CurrencyTable } from '../domain/currencies.ts';

/** Returns the table with the file's limits. @throws Error naming file, currency and field. */
export function readCurrencyLimits(path: string | undefined): CurrencyTable {
  if (path === undefined) return CURRENCIES;
  try {
    return withOverrides(CURRENCIES, JSON.parse(readFileSync(path, 'utf8')) as unknown);
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not valid JSON' : messageOf(error);
    throw new Error(`${path}: ${reason}`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
