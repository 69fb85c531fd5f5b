import { z } from 'zod';
import { amountProblem, currencyProblem, normaliseCurrency } from '../domain/currencies.ts';
import { PAYMENT_METHOD_KINDS } from '../domain/payment-method.ts';
import { text } from './fields.ts';
import type { Problem } from './fields.ts';

/** Fields that requests about money have in common. */

const RECEIPT_ID_MAX = 255;
const DESCRIPTION_MAX = 5_000;
const STORE_FRONT_ID_MAX = 255;
/** There are fewer kinds than this; the bound keeps the answer to a wrong list short. */
const PAYMENT_METHODS_MAX = 20;

/** Bounds come with the currency. Rule: D-01. */
export const amount = z
  .custom<number>(Number.isSafeInteger, {
    error: ({ input }) =>
      input === undefined || input === null
        ? 'is required'
        : 'must be an integer in the smallest currency unit',
  })
  .meta({ type: 'integer', format: 'int64', minimum: 1 });

/** Rule: D-02. */
export const currency = z
  .string()
  .transform((given, ctx) => {
    const code = normaliseCurrency(given);
    const problem =
      code === null ? 'must be a three-letter ISO 4217 currency code' : currencyProblem(code);
    if (code !== null && problem === null) return code;
    ctx.addIssue({ code: 'custom', message: problem ?? '', input: given });
    return z.NEVER;
  })
  .meta({ pattern: '^[A-Za-z]{3}$' });

/** The merchant's own name for an order. */
export const receiptId = text(RECEIPT_ID_MAX);

/** What is said of an order, by the merchant. */
export const description = text(DESCRIPTION_MAX);

/** Opaque, stored unchecked. Rule: D-14. */
export const storeFrontId = text(STORE_FRONT_ID_MAX);

/** How the payer may pay, each once. Rule: D-43. */
export const paymentMethods = z
  .array(z.enum(PAYMENT_METHOD_KINDS))
  .max(PAYMENT_METHODS_MAX)
  .transform((kinds) => [...new Set(kinds)]);

/** Amounts outside the bounds of their currency, by the names of their fields. Rule: D-03. */
export function amountProblems(
  amounts: Readonly<Record<string, number | undefined>>,
  code: string | undefined,
): Problem[] {
  return Object.entries(amounts).flatMap(([field, value]) => {
    if (value === undefined) return [];
    if (code === undefined) return value > 0 ? [] : [{ field, message: 'must be greater than 0' }];
    const message = amountProblem(value, code);
    return message === null ? [] : [{ field, message }];
  });
}
