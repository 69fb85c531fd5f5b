import { currencyOf } from './currencies.ts';
import { invariant } from './errors.ts';

/**
 * True for an amount in minor units: a safe integer of at least 0. -0 is refused: JSON can contain it, but
 * it would be written back as 0.
 *
 * Rule: D-01.
 */
export function isAmountMinor(value: unknown): value is number {
  return (
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0)
  );
}

/**
 * The amount for people, with a point and all digits of the currency: `12.34 USD`, `500 JPY`. Retired
 * currencies are formatted, too. Throws for an invalid amount and for a code that is not in the table.
 */
export function formatAmount(amountMinor: number, currency: string): string {
  invariant(isAmountMinor(amountMinor), 'an amount is a safe integer of at least 0');
  const exponent = currencyOf(currency)?.exponent;
  invariant(exponent !== undefined, 'the currency of an amount is in the table');
  if (exponent === 0) return `${amountMinor} ${currency}`;
  const digits = String(amountMinor).padStart(exponent + 1, '0');
  return `${digits.slice(0, -exponent)}.${digits.slice(-exponent)} ${currency}`;
}
