import type { AmountUse } from '../gateways/port.ts';
import type { ApiDeps } from './deps.ts';
import type { Problem } from './fields.ts';
import { CURRENCIES, currencyOf } from '../domain/currencies.ts';
import type { Currency, CurrencyTable } from '../domain/currencies.ts';

/**
 * Returns the problems of amounts that the merchant's gateway can never charge or refund. Reads on another
 * connection: call it outside a transaction.
 * @throws DomainError `operation_not_allowed` for a live merchant without a gateway.
 */
export async function gatewayAmountProblems(
  { gateways }: Pick<ApiDeps, 'gateways'>,
  merchantId: string,
  amounts: Readonly<Record<string, number | undefined>>,
  currency: string,
  use: AmountUse = 'charge',
): Promise<Problem[]> {
  const gateway = await gateways.forNewMethods(merchantId);
  return Object.entries(amounts).flatMap(([field, amount]) => {
    const message = amount === undefined ? null : gateway.amountProblem(amount, currency, use);
    return message === null ? [] : [{ field, message }];
  });
}

let table: CurrencyTable = CURRENCIES;

/** Sets the currency table of this process, once at its start. Default: the checked-in table. */
export function useCurrencies(currencies: CurrencyTable): void {
  table = currencies;
}

export function currencies(): CurrencyTable {
  return table;
}

/** A command that sets an amount contains this row: the workflow knows only the checked-in table. */
export function changedCurrency(code: string): Currency | undefined {
  const row = currencyOf(code, table);
  return row === currencyOf(code) ? undefined : row;
}
