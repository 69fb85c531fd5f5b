import { currencyOf } from './currencies.ts';
import { invariant } from './errors.ts';

/** True for an amount in minor units. False for -0, because JSON can contain -0 but JavaScript writes it as 0. */
export function isAmountMinor(value: unknown): value is number {
  return (
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)
  );
}

/** Returns the amount with all digits: `12.34 USD`, `500 JPY`. Throws for an invalid amount and an unknown code. */
export function formatAmount(amountMinor: number | bigint, currency: string): string {
  const isValid = typeof amountMinor === 'bigint' ? amountMinor >= 0n : isAmountMinor(amountMinor);
  invariant(isValid, 'an amount is a safe integer of at least 0');
  const exponent = currencyOf(currency)?.exponent;
  invariant(exponent !== undefined, 'the currency of an amount is in the table');
  if (exponent === 0) return `${amountMinor} ${currency}`;
  const digits = String(amountMinor).padStart(exponent + 1, '0');
  return `${digits.slice(0, -exponent)}.${digits.slice(-exponent)} ${currency}`;
}
