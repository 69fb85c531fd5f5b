import { z } from 'zod';
import {
  CYCLE_COUNT_MAX,
  cycleCountProblem,
  INTERVAL_COUNT_MAX,
  INTERVAL_UNITS,
  intervalCountProblem,
  termsProblems,
} from '../../../domain/calendar.ts';
import { sumProblem } from '../../../domain/subscription/terms.ts';
import type { Terms } from '../../../domain/subscription/terms.ts';
import { EXTENSION } from '../../answer-fields.ts';
import {
  amount,
  amountProblems,
  cancelUrl,
  currency,
  customerDetails,
  description,
  httpUrl,
  knownCustomerId,
  locale,
  optional,
  ownPairs,
  PAYER,
  phoneNumberRequired,
  receiptId,
  text,
  wholeNumber,
  gatewayAmountProblems,
} from '../../fields.ts';
import { hasFields } from '../../http/body.ts';
import type { Fields, Problem } from '../../http/body.ts';
import type { Merchant } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';

const NAME_MAX = 255;

/** Empty text counts as absent. */
const shownText = (schema: z.ZodType<string>) =>
  optional(schema).transform((given) => (given === '' ? undefined : given));

export const interval = z.enum(INTERVAL_UNITS).meta({ id: 'IntervalUnit' });

/** The document shows the maximum of DAY. `intervalCountProblem` checks that of the request's unit. */
export const intervalCount = wholeNumber(1).meta({ maximum: INTERVAL_COUNT_MAX.DAY });

export const cycleCount = wholeNumber(1).meta({ maximum: CYCLE_COUNT_MAX });

export const termsFields = {
  amount: amount.describe(
    'Amount of each cycle, in the smallest currency unit. More than 1 USD or its equivalent.',
  ),
  currency,
  customerDetails: customerDetails.describe(PAYER),
  callbackUrl: httpUrl().describe(
    'Where the payer’s browser goes afterwards, with `subscription_id` and `status` added. ' +
      'The parameters are unsigned and never prove a payment.',
  ),
  interval: interval.describe('Unit of the time between two billings.'),
  intervalCount: intervalCount.describe(
    'Number of intervals between two billings: 3 with MONTH bills every three months. At most ' +
      '3650 DAY, 520 WEEK, 120 MONTH, 10 YEAR.',
  ),
  cycleCount: cycleCount.describe(
    'Total number of billing cycles, including the first. At most 1200.',
  ),
  receiptId: optional(receiptId).describe('Your own order id.'),
  description: optional(description).describe('What the subscription is for.'),
  cancelUrl,
  upfrontAmount: optional(amount).describe(
    'Amount of the first cycle, instead of `amount`. Not allowed with a trial.',
  ),
  trialPeriodCount: optional(wholeNumber(0)).describe(
    'Number of trial periods before the first cycle. 0 means no trial. Not allowed with `upfrontAmount`.',
  ),
  trialPeriodInterval: optional(interval).describe(
    'Unit of the trial periods. Required with `trialPeriodCount`.',
  ),
  metadata: ownPairs,
  phoneNumberRequired,
  locale,
  productPage: optional(
    z
      .object({ name: shownText(text(NAME_MAX)), description: shownText(description) })
      .meta({ id: 'ProductPage' }),
  ).describe('Name and description of the product on the page.'),
  customerId: knownCustomerId.meta(EXTENSION),
};

type SharedFields = Omit<Fields<typeof termsFields>, 'callbackUrl' | 'metadata'>;
type Given = { [Name in keyof SharedFields]?: SharedFields[Name] | undefined };

export function termsFieldsProblems(fields: Given): Problem[] {
  const { amount: recurring, upfrontAmount, currency: code } = fields;
  return [
    ...amountProblems({ amount: recurring, upfrontAmount }, code),
    ...boundsProblems(fields),
    ...sumProblems(fields),
    ...trialRuleProblems(fields),
  ];
}

function boundsProblems(given: Given): Problem[] {
  const { interval: unit, intervalCount: count, cycleCount: cycles } = given;
  const problems = {
    intervalCount:
      unit === undefined || count === undefined ? null : intervalCountProblem(unit, count),
    cycleCount: cycles === undefined ? null : cycleCountProblem(cycles),
  };
  return Object.entries(problems).flatMap(([field, message]) =>
    message === null ? [] : [{ field, message }],
  );
}

/** Returns the problems of amounts whose sum over all cycles is not a safe integer. */
function sumProblems({ amount: recurring, cycleCount: cycles, upfrontAmount }: Given): Problem[] {
  if (recurring === undefined || cycles === undefined) return [];
  const message = sumProblem({
    amountMinor: recurring,
    cycleCount: cycles,
    upfrontAmountMinor: upfrontAmount ?? null,
  });
  return message === null ? [] : ['amount', 'cycleCount'].map((field) => ({ field, message }));
}

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

export function datedProblems(fields: Given, startAt: number): Problem[] {
  return hasFields(fields, ['interval', 'intervalCount', 'cycleCount'])
    ? termsProblems(fields, startAt)
    : [];
}

type TermsFields = Pick<
  SharedFields,
  | 'amount'
  | 'currency'
  | 'interval'
  | 'intervalCount'
  | 'cycleCount'
  | 'upfrontAmount'
  | 'trialPeriodInterval'
  | 'trialPeriodCount'
>;

export function termsOf(body: TermsFields): Terms {
  const { trialPeriodInterval, trialPeriodCount = 0 } = body;
  return {
    amountMinor: body.amount,
    currency: body.currency,
    interval: body.interval,
    intervalCount: body.intervalCount,
    cycleCount: body.cycleCount,
    upfrontAmountMinor: body.upfrontAmount ?? null,
    // A count of 0 means no trial.
    trial:
      trialPeriodInterval === undefined || trialPeriodCount === 0
        ? null
        : { interval: trialPeriodInterval, count: trialPeriodCount },
  };
}

export function termsAndOrder<Body extends SharedFields>(body: Body) {
  const {
    amount: _amount,
    currency: _currency,
    interval: _interval,
    intervalCount: _intervalCount,
    cycleCount: _cycleCount,
    upfrontAmount: _upfrontAmount,
    trialPeriodInterval: _trialPeriodInterval,
    trialPeriodCount: _trialPeriodCount,
    customerId,
    ...order
  } = body;
  return { terms: termsOf(body), customerId, order };
}

/** Returns the problems of amounts that the merchant's gateway cannot charge. */
export function gatewayTermsProblems(
  { merchant, body }: { merchant: Merchant; body: TermsFields },
  deps: ApiDeps,
): Promise<Problem[]> {
  const { amount: recurring, upfrontAmount, currency: code } = body;
  return gatewayAmountProblems(deps, merchant.id, { amount: recurring, upfrontAmount }, code);
}
