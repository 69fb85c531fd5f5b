import { z } from 'zod';
import {
  CYCLE_COUNT_MAX,
  INTERVAL_COUNT_MAX,
  INTERVAL_UNITS,
  cycleCountProblem,
  intervalCountProblem,
  termsProblems,
} from '../../../domain/calendar.ts';
import {
  httpUrl,
  idText,
  instant,
  metadata,
  numberText,
  optional,
  problemsError,
  readFields,
  text,
  wholeNumber,
} from '../../fields.ts';
import type { Fields, Problem } from '../../fields.ts';
import { amount, amountProblems, currency, description, receiptId } from '../../payment-fields.ts';
import { customerDetails } from '../customers/schema.ts';

const NAME_MAX = 255;

const productPage = z.object({
  name: optional(text(NAME_MAX)),
  description: optional(description),
});

/** The maximum is that of DAY. The lower limits of the other units are checked later. Rule: D-06. */
export const intervalCountField = wholeNumber(1).meta({ maximum: INTERVAL_COUNT_MAX.DAY });

/** Rule: D-06. */
export const cycleCountField = wholeNumber(1).meta({ maximum: CYCLE_COUNT_MAX });

/** `customerId` and `testClockId` are extensions. Rules: IF-4.3, D-11, D-60. */
export const CreateSubscriptionShape = {
  amount,
  currency,
  customerDetails,
  callbackUrl: httpUrl(),
  interval: z.enum(INTERVAL_UNITS),
  intervalCount: intervalCountField,
  cycleCount: cycleCountField,
  receiptId: optional(receiptId),
  description: optional(description),
  cancelUrl: optional(httpUrl()),
  upfrontAmount: optional(amount),
  trialPeriodCount: optional(wholeNumber(0)),
  trialPeriodInterval: optional(z.enum(INTERVAL_UNITS)),
  metadata: optional(metadata()),
  phoneNumberRequired: optional(z.boolean()),
  productPage: optional(productPage),
  customerId: optional(idText()),
  testClockId: optional(idText()),
};

export type CreateSubscriptionBody = Fields<typeof CreateSubscriptionShape>;

/**
 * Reads the fields of a create request. The length of the trial and the last billing date are checked
 * for a begin at `startAt`. With a test clock {@link checkTerms} checks them later, because the time of
 * the clock is not known yet.
 *
 * @throws DomainError `bad_request` naming every invalid field.
 */
export function readCreateSubscription(body: unknown, startAt: number): CreateSubscriptionBody {
  return readFields(CreateSubscriptionShape, body, (fields) => [
    ...subscriptionProblems(fields),
    ...(fields.testClockId === undefined ? datedProblems(fields, startAt) : []),
  ]);
}

/** Checks the dates for a begin at `startAt`. Throws like {@link readCreateSubscription}. */
export function checkTerms(body: CreateSubscriptionBody, startAt: number): void {
  const problems = datedProblems(body, startAt);
  if (problems.length > 0) throw problemsError(problems);
}

type Given = Partial<Omit<CreateSubscriptionBody, 'callbackUrl' | 'metadata' | 'testClockId'>>;

/** Problems of the terms that do not depend on when the subscription begins. */
export function subscriptionProblems(fields: Given): Problem[] {
  const { amount: recurring, upfrontAmount, currency: code } = fields;
  return [
    ...amountProblems({ amount: recurring, upfrontAmount }, code),
    ...boundsProblems(fields),
    ...trialRuleProblems(fields),
  ];
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

/** Problems of the dates of a subscription that begins at `startAt`. Rule: D-06. */
export function datedProblems(fields: Given, startAt: number): Problem[] {
  const { interval, intervalCount, cycleCount, trialPeriodInterval, trialPeriodCount } = fields;
  if (interval === undefined || intervalCount === undefined || cycleCount === undefined) return [];
  const terms = { interval, intervalCount, cycleCount, trialPeriodInterval, trialPeriodCount };
  return termsProblems(terms, startAt);
}

/** The body of a command without other fields. Rules: IF-4.7, IF-4.9. */
export const SubscriptionIdBody = { subscriptionId: idText() };

/** The workflow checks that the date lies in the future of the subscription's time. Rule: IF-4.8. */
export const UnpauseSubscriptionBody = { ...SubscriptionIdBody, newNextPaymentDate: instant };

export const UPCOMING_LIMIT_DEFAULT = 12;
const UPCOMING_LIMIT_MAX = 100;

/** The query of the upcoming charges. Rule: D-§7. */
export const UpcomingQuery = {
  limit: optional(numberText(1, UPCOMING_LIMIT_MAX)),
};
