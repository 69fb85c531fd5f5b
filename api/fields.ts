import { z } from 'zod';
import { BILLING_HORIZON_AT, instantProblem } from '../domain/calendar.ts';
import { isHttpUrl } from '../domain/http-url.ts';
import { hasAtMost, isStorable } from '../domain/storable-text.ts';
import {
  amountProblem,
  CURRENCIES,
  currencyOf,
  currencyProblem,
  normaliseCurrency,
} from '../domain/currencies.ts';
import type { AmountUse, Currency, CurrencyTable } from '../domain/currencies.ts';
import { LOCALES } from '../domain/locales.ts';
import { EXTENSION } from './answer-fields.ts';
import { DomainError } from '../domain/errors.ts';
import { isPlainObject, UnstoredRefusal } from './http/body.ts';
import type { Fields, Problem } from './http/body.ts';
import { isCountryCode } from '../domain/countries.ts';
import type { AmountUse as GatewayAmountUse } from '../gateways/port.ts';
import type { ApiDeps } from './deps.ts';
import type { Merchant } from './http/request.ts';

/** An optional field: null means absent. */
export function optional<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** Text of at most `max` code points. */
export function text(max: number) {
  return limited(max)
    .refine(isStorable, { error: 'must be text without NUL characters and unpaired surrogates' })
    .meta({ maxLength: max });
}

/** Zod's own `max` counts UTF-16 units. */
function limited(max: number) {
  return z.string().refine((value) => hasAtMost(value, max), {
    error: `must have at most ${max} characters`,
  });
}

const ID_MAX = 64;

/** The id of a record. Only the length is checked; the handler looks the record up. */
export function idText() {
  return text(ID_MAX);
}

/** The message about a value that a custom type refuses. */
const requiredOr =
  (message: string) =>
  ({ input }: { readonly input?: unknown }): string =>
    input === undefined || input === null ? 'is required' : message;

/** JSON Schema of an instant in the OpenAPI document. Zod derives no JSON Schema from a custom type. */
const INSTANT_META = {
  type: 'integer',
  format: 'int64',
  minimum: 0,
  maximum: BILLING_HORIZON_AT - 1,
} as const;

export const instant = z
  .custom<number>((value) => instantProblem(value) === null, {
    error: (issue) => requiredOr(instantProblem(issue.input) ?? '')(issue),
  })
  .meta(INSTANT_META);

export function wholeNumber(min: number) {
  return z
    .custom<number>((value) => Number.isSafeInteger(value) && Number(value) >= min, {
      error: requiredOr(`must be an integer of at least ${min}`),
    })
    .meta({ type: 'integer', format: 'int64', minimum: min });
}

const URL_LENGTH_MAX = 2_048;

export function httpUrl() {
  return limited(URL_LENGTH_MAX)
    .refine(isHttpUrl, { error: 'must be an absolute http or https URL' })
    .meta({ maxLength: URL_LENGTH_MAX, format: 'uri', pattern: '^[hH][tT][tT][pP][sS]?://' });
}

const METADATA_PAIRS_MAX = 50;
const METADATA_KEY_MAX = 40;
const METADATA_VALUE_MAX = 500;

export function metadata() {
  return metadataPairs().meta({
    type: 'object',
    maxProperties: METADATA_PAIRS_MAX,
    propertyNames: { maxLength: METADATA_KEY_MAX },
    additionalProperties: { type: 'string', maxLength: METADATA_VALUE_MAX },
  });
}

function metadataPairs() {
  return z.unknown().transform((value, ctx): Record<string, string> => {
    const problem = (message: string, path: string[] = []): void => {
      ctx.addIssue({ code: 'custom', message, path, input: value });
    };
    if (!isPlainObject(value)) {
      problem('must be an object');
      return z.NEVER;
    }
    const pairs = Object.entries(value);
    if (pairs.length > METADATA_PAIRS_MAX) {
      problem(`must have at most ${METADATA_PAIRS_MAX} pairs`);
      return z.NEVER;
    }
    if (pairs.some(([key]) => !hasAtMost(key, METADATA_KEY_MAX) || !isStorable(key))) {
      problem(`must have keys of at most ${METADATA_KEY_MAX} characters`);
    }
    for (const [key, member] of pairs) {
      if (!hasAtMost(key, METADATA_KEY_MAX)) continue;
      const isRight =
        typeof member === 'string' && hasAtMost(member, METADATA_VALUE_MAX) && isStorable(member);
      if (!isRight) problem(`must be a string of at most ${METADATA_VALUE_MAX} characters`, [key]);
    }
    return value as Record<string, string>; // every member was checked above
  });
}

/** A whole number in a query string, where every value is text. */
export function numberText(min: number, max: number) {
  return z
    .custom<string>(
      (value) =>
        typeof value === 'string' &&
        /^(0|[1-9]\d{0,14})$/.test(value) &&
        Number(value) >= min &&
        Number(value) <= max,
      { error: `must be an integer from ${min} to ${max}` },
    )
    .meta({ type: 'integer', minimum: min, maximum: max })
    .transform(Number);
}

const instantTextProblem = (value: unknown): string | null =>
  instantProblem(
    typeof value === 'string' && /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : null,
  );

export const instantText = z
  .custom<string>((value) => instantTextProblem(value) === null, {
    error: ({ input }) => instantTextProblem(input) ?? '',
  })
  .meta(INSTANT_META)
  .transform(Number);

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

export const locale = optional(z.enum(LOCALES).meta({ id: 'PageLocale' })).meta({
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

/**
 * Returns the problems of amounts that the merchant's gateway can never charge or refund. Reads on another
 * connection: call it outside a transaction.
 * @throws UnstoredRefusal `operation_not_allowed` for a live merchant without a gateway.
 */
export async function gatewayAmountProblems(
  { gateways }: Pick<ApiDeps, 'gateways'>,
  merchantId: string,
  amounts: Readonly<Record<string, number | undefined>>,
  currency: string,
  use: GatewayAmountUse = 'charge',
): Promise<Problem[]> {
  const gateway = await gateways.forNewMethods(merchantId).catch((error: unknown) => {
    throw error instanceof DomainError ? new UnstoredRefusal(error.code, error.message) : error;
  });
  return Object.entries(amounts).flatMap(([field, amount]) => {
    const message = amount === undefined ? null : gateway.amountProblem(amount, currency, use);
    return message === null ? [] : [{ field, message }];
  });
}

interface Charged {
  readonly amount: number;
  readonly upfrontAmount?: number | undefined;
  readonly currency: string;
}

/** The same for the amounts of a request. */
export function gatewayChargeProblems(
  { merchant, body }: { merchant: Merchant; body: Charged },
  deps: ApiDeps,
): Promise<Problem[]> {
  const { amount: first, upfrontAmount, currency: code } = body;
  return gatewayAmountProblems(deps, merchant.id, { amount: first, upfrontAmount }, code);
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
