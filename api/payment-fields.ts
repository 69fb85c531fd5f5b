import { z } from 'zod';
import { amountProblem, currencyProblem, normaliseCurrency } from '../domain/currencies.ts';
import type { AmountUse } from '../domain/currencies.ts';
import { LOCALES } from '../domain/locales.ts';
import { currencies } from './amounts.ts';
import { EXTENSION } from './answer-fields.ts';
import { httpUrl, idText, metadata, optional, requiredOr, text } from './fields.ts';
import type { Fields, Problem } from './fields.ts';
import { isCountryCode } from '../domain/countries.ts';

const RECEIPT_ID_MAX = 255;
const DESCRIPTION_MAX = 5_000;
const COMMENTS_MAX = 5_000;
const STORE_FRONT_ID_MAX = 255;
/** Maximum number of payment methods in a request. The limit keeps an error answer short. */
const PAYMENT_METHODS_MAX = 20;

/** Accepts every integer. {@link amountProblems} checks the bounds of the currency. */
export const amount = z
  .custom<number>(Number.isSafeInteger, {
    error: requiredOr('must be an integer in the smallest currency unit'),
  })
  .meta({ type: 'integer', format: 'int64', minimum: 1 });

const chargeAmount = amount.describe(
  'In the smallest currency unit. At least 0.50 USD or its equivalent.',
);

/** Accepts every code. {@link amountProblems} and {@link currencyProblems} check that it is supported. */
export const currency = z
  .string()
  .transform((given, ctx) => {
    const code = normaliseCurrency(given);
    if (code !== null) return code;
    ctx.addIssue({ code: 'custom', message: CODE_PROBLEM, input: given });
    return z.NEVER;
  })
  .meta({ description: 'Three-letter ISO 4217 code.', pattern: '^[A-Za-z]{3}$' });

const CODE_PROBLEM = 'must be a three-letter ISO 4217 currency code';

export function currencyProblems({ currency: code }: { currency?: string | undefined }): Problem[] {
  const message = code === undefined ? null : currencyProblem(code, currencies());
  return message === null ? [] : [{ field: 'currency', message }];
}

export const chargeFields = { amount: chargeAmount, currency };

export function chargeProblems(given: Partial<Fields<typeof chargeFields>>): Problem[] {
  return amountProblems({ amount: given.amount }, given.currency, 'charge');
}

export const receiptId = text(RECEIPT_ID_MAX);

export const description = text(DESCRIPTION_MAX);

export const comments = text(COMMENTS_MAX);

export const storeFrontId = optional(text(STORE_FRONT_ID_MAX)).describe(
  'Your own id of a store. Stored without a check.',
);

export const ownPairs = optional(metadata()).describe('Your own key-value pairs.');

export const cancelUrl = optional(httpUrl()).describe(
  'Where the payer’s browser goes when the payer cancels. Default: `callbackUrl`.',
);

export const knownCustomerId = optional(idText()).describe(
  'Id of an existing customer. Without it a customer is created from the details.',
);

export const PAYER = 'The payer. The page asks for a missing name or e-mail address.';

/** Names of payment methods that the payer may use. An unknown name counts as unavailable. */
export const paymentMethods = z
  .array(
    z.string().regex(/^[A-Z_]{1,40}$/, { error: 'must be upper-case letters and underscores' }),
  )
  .max(PAYMENT_METHODS_MAX);

export const phoneNumberRequired = z
  .boolean()
  .nullish()
  .transform((isRequired) => isRequired ?? false)
  .describe('Whether the page asks for a telephone number. Default: false.');

export const locale = optional(z.enum(LOCALES).meta({ id: 'Locale' })).meta({
  description:
    'Language of the hosted pages. Without it the payer’s browser decides, with English as the default.',
  ...EXTENSION,
});

/** Returns the problems of the currency, and of amounts outside its bounds. The keys of `amounts` are field names. */
export function amountProblems(
  amounts: Readonly<Record<string, number | undefined>>,
  code: string | undefined,
  use: AmountUse = 'cycle',
): Problem[] {
  const ofCurrency = currencyProblems({ currency: code });
  const ofAmounts = Object.entries(amounts).flatMap(([field, value]) => {
    if (value === undefined) return [];
    if (code === undefined || ofCurrency.length > 0) {
      return value > 0 ? [] : [{ field, message: 'must be greater than 0' }];
    }
    const message = amountProblem(value, code, use, currencies());
    return message === null ? [] : [{ field, message }];
  });
  return [...ofCurrency, ...ofAmounts];
}

const DETAIL_MAX = 255;

const detail = () => text(DETAIL_MAX).nullish();

/** Checks only the form of an e-mail address, not whether the address accepts mail. */
export const EMAIL_PATTERN = /^[^\s@]+@[^\s@.]+(\.[^\s@.]+)+$/;

// The pattern accepts an empty string, because an empty string counts as absent.
const email = text(DETAIL_MAX).regex(new RegExp(`^$|${EMAIL_PATTERN.source}`), {
  error: 'must be an e-mail address',
});

const country = z
  .string()
  .refine(
    (code) => /^([A-Za-z]{2})?$/.test(code) && (code === '' || isCountryCode(code.toUpperCase())),
    {
      error: 'must be an ISO 3166 alpha-2 country code',
    },
  )
  .meta({ pattern: '^([A-Za-z]{2})?$' });

export const customerDetails = z
  .object({
    name: detail(),
    email: email.nullish(),
    contactNumber: detail(),
    customerAddress: z.preprocess(
      (given) => (given === '' ? undefined : given),
      z
        .object({
          addressLine1: detail(),
          addressLine2: detail(),
          city: detail(),
          state: detail(),
          country: country.nullish(),
          postalCode: detail(),
        })
        .nullish(),
    ),
  })
  .meta({
    id: 'CustomerDetails',
    description: 'Details of a payer. Every field is optional and is returned as given.',
  });
