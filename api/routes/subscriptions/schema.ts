import { z } from 'zod';
import {
  INTERVAL_UNITS,
  cycleCountProblem,
  intervalCountProblem,
  isInstant,
  termsProblems,
} from '../../../domain/calendar.ts';
import { amountProblem, currencyProblem, normaliseCurrency } from '../../../domain/currencies.ts';
import {
  httpUrl,
  metadata,
  optional,
  problemsError,
  readFields,
  text,
  wholeNumber,
} from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import { customerDetails } from '../customers/schema.ts';

/** Ids are at most this long; a longer text names nothing. */
const ID_MAX = 64;
const RECEIPT_ID_MAX = 255;
const NAME_MAX = 255;
const DESCRIPTION_MAX = 5_000;

/** Bounds come with the currency. Rule: D-01. */
export const amount = z.custom<number>(Number.isSafeInteger, {
  error: ({ input }) =>
    input === undefined || input === null
      ? 'is required'
      : 'must be an integer in the smallest currency unit',
});

const currency = z.string().transform((given, ctx) => {
  const code = normaliseCurrency(given);
  const problem =
    code === null ? 'must be a three-letter ISO 4217 currency code' : currencyProblem(code);
  if (code !== null && problem === null) return code;
  ctx.addIssue({ code: 'custom', message: problem ?? '', input: given });
  return z.NEVER;
});

const productPage = z.object({
  name: optional(text(NAME_MAX)),
  description: optional(text(DESCRIPTION_MAX)),
});

/** Rule: IF-4.3; `customerId` and `testClockId` are extensions (D-11, D-60). */
const CreateSubscriptionShape = {
  amount,
  currency,
  customerDetails,
  callbackUrl: httpUrl(),
  interval: z.enum(INTERVAL_UNITS),
  intervalCount: wholeNumber(1),
  cycleCount: wholeNumber(1),
  receiptId: optional(text(RECEIPT_ID_MAX)),
  description: optional(text(DESCRIPTION_MAX)),
  cancelUrl: optional(httpUrl()),
  upfrontAmount: optional(amount),
  trialPeriodCount: optional(wholeNumber(0)),
  trialPeriodInterval: optional(z.enum(INTERVAL_UNITS)),
  metadata: optional(metadata()),
  phoneNumberRequired: optional(z.boolean()),
  productPage: optional(productPage),
  customerId: optional(text(ID_MAX)),
  testClockId: optional(text(ID_MAX)),
};

export type CreateSubscriptionBody = Fields<typeof CreateSubscriptionShape>;

/**
 * The fields of a create request. What depends on when the subscription begins (the length of a
 * trial, the last billing date) is judged for `startAt`; on a test clock, whose time is not known
 * yet, by {@link checkTerms}.
 *
 * @throws DomainError `bad_request` naming every offending field.
 */
export function readCreateSubscription(body: unknown, startAt: number): CreateSubscriptionBody {
  return readFields(CreateSubscriptionShape, body, (fields) => [
    ...amountProblems(fields),
    ...boundsProblems(fields),
    ...trialRuleProblems(fields),
    ...(fields.testClockId === undefined ? datedProblems(fields, startAt) : []),
  ]);
}

/** The dates of the terms when they begin at `startAt`. Throws as {@link readCreateSubscription}. */
export function checkTerms(body: CreateSubscriptionBody, startAt: number): void {
  const problems = datedProblems(body, startAt);
  if (problems.length > 0) throw problemsError(problems);
}

type Given = Partial<CreateSubscriptionBody>;

/** Rule: D-03. */
function amountProblems({ amount: recurring, upfrontAmount, currency: code }: Given): Problem[] {
  return Object.entries({ amount: recurring, upfrontAmount }).flatMap(([field, value]) => {
    if (value === undefined) return [];
    if (code === undefined) return value > 0 ? [] : [{ field, message: 'must be greater than 0' }];
    const message = amountProblem(value, code);
    return message === null ? [] : [{ field, message }];
  });
}

/** Rule: D-06. */
function boundsProblems({ interval, intervalCount, cycleCount }: Given): Problem[] {
  const problems = [
    {
      field: 'intervalCount',
      message:
        interval === undefined || intervalCount === undefined
          ? null
          : intervalCountProblem(interval, intervalCount),
    },
    {
      field: 'cycleCount',
      message: cycleCount === undefined ? null : cycleCountProblem(cycleCount),
    },
  ];
  return problems.flatMap(({ field, message }) => (message === null ? [] : [{ field, message }]));
}

/** Rules: IF-4, D-12. */
function trialRuleProblems(fields: Given): Problem[] {
  const { trialPeriodCount, trialPeriodInterval, upfrontAmount } = fields;
  if (trialPeriodCount === undefined) return [];
  const problems: Problem[] = [];
  if (trialPeriodInterval === undefined) {
    problems.push({ field: 'trialPeriodInterval', message: 'is required with trialPeriodCount' });
  }
  if (upfrontAmount !== undefined) {
    problems.push({ field: 'upfrontAmount', message: 'cannot be given with trialPeriodCount' });
  }
  return problems;
}

/** Rule: D-06. */
function datedProblems(fields: Given, startAt: number): Problem[] {
  const { interval, intervalCount, cycleCount, trialPeriodInterval, trialPeriodCount } = fields;
  if (interval === undefined || intervalCount === undefined || cycleCount === undefined) return [];
  const terms = { interval, intervalCount, cycleCount, trialPeriodInterval, trialPeriodCount };
  return termsProblems(terms, startAt);
}

/** The body of a command that needs nothing more. Rules: IF-4.7, IF-4.9. */
export const SubscriptionIdBody = { subscriptionId: text(ID_MAX) };

/** Epoch milliseconds; whether they lie in the future is for the subscription's own time to say. */
export const paymentDate = z.custom<number>(isInstant, {
  error: ({ input }) =>
    input === undefined || input === null
      ? 'is required'
      : 'must be epoch milliseconds before the year 2200',
});

/** Rule: IF-4.8. */
export const UnpauseSubscriptionBody = { ...SubscriptionIdBody, newNextPaymentDate: paymentDate };

export const UPCOMING_LIMIT_DEFAULT = 12;
const UPCOMING_LIMIT_MAX = 100;

/** The query of the upcoming charges; a number in an address is text. Rule: D-§7. */
export const UpcomingQuery = {
  limit: optional(
    z
      .custom<string>(
        (value) =>
          typeof value === 'string' &&
          /^[1-9]\d{0,2}$/.test(value) &&
          Number(value) <= UPCOMING_LIMIT_MAX,
        { error: `must be an integer from 1 to ${UPCOMING_LIMIT_MAX}` },
      )
      .transform(Number),
  ),
};
