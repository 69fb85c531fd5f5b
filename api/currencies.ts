import { CURRENCIES, currencyOf } from '../domain/currencies.ts';
import type { Currency, CurrencyTable } from '../domain/currencies.ts';

let table: CurrencyTable = CURRENCIES;

/** Sets the currency table of this process, once at its start. Default: the checked-in table. */
export function useCurrencies(currencies: CurrencyTable): void {
  table = currencies;
}

export function currencies(): CurrencyTable {
  return table;
}

/**
 * Returns the currency's row if the row differs from the checked-in table; else undefined. A command that sets
 * an amount must contain this row, because the subscription's workflow knows only the checked-in table.
 */
export function changedCurrency(code: string): Currency | undefined {
  const row = currencyOf(code, table);
  return row === currencyOf(code) ? undefined : row;
}
