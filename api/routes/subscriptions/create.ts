import { z } from 'zod';
import {
  CYCLE_COUNT_MAX,
  cycleCountProblem,
  formatInstant,
  INTERVAL_COUNT_MAX,
  INTERVAL_UNITS,
  intervalCountProblem,
  termsProblems,
} from '../../../domain/calendar.ts';
import { sumProblem } from '../../../domain/subscription/terms.ts';
import type { Terms } from '../../../domain/subscription/terms.ts';
import { dateTime, EXTENSION, id, SUBSCRIPTION_ID, url } from '../../answer-fields.ts';
import {
  amount,
  amountProblems,
  cancelUrl,
  currency,
  customerDetails,
  description,
  httpUrl,
  idText,
  knownCustomerId,
  locale,
  optional,
  ownPairs,
  PAYER,
  phoneNumberRequired,
  receiptId,
  text,
  wholeNumber,
  gatewayChargeProblems,
} from '../../fields.ts';
import { hasFields, refuseProblems } from '../../http/body.ts';
import type { Fields, Problem } from '../../http/body.ts';
import type { ApiDeps } from '../../deps.ts';
import type { Db } from '../../../db/client.ts';
import { findTestClock } from '../../../db/repositories/merchants/test-clocks.ts';
import { newId, randomToken } from '../../../domain/ids.ts';
import { found, ok } from '../../http/request.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { route } from '../../http/route.ts';
import { createSubscription as insertSubscription } from '../../../db/repositories/subscriptions/create.ts';
import type { SubscriptionOrder } from '../../../db/repositories/subscriptions/write-change.ts';
import type { NewSubscription } from '../../../domain/subscription/state.ts';
import { findCustomer, insertCustomer } from '../../../db/repositories/customers/customers.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';

const NAME_MAX = 255;

/** Empty text counts as absent. */
const shownText = (schema: z.ZodType<string>) =>
  optional(schema).transform((given) => (given === '' ? undefined : given));

export const interval = z.enum(INTERVAL_UNITS).meta({ id: 'IntervalUnit' });

/** The document shows the maximum of DAY. `intervalCountProblem` checks that of the request's unit. */
export const intervalCount = wholeNumber(1).meta({ maximum: INTERVAL_COUNT_MAX.DAY });

export const cycleCount = wholeNumber(1).meta({ maximum: CYCLE_COUNT_MAX });

export const shownProduct = z
  .object({ name: shownText(text(NAME_MAX)), description: shownText(description) })
  .meta({ id: 'ProductPage' });

export const productPage = optional(shownProduct).describe(
  'Name and description of the product on the page.',
);

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
  productPage,
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

const fields = {
  ...termsFields,
  testClockId: optional(idText()).meta({
    description: 'Id of the test clock of the subscription. Test credentials only.',
    ...EXTENSION,
  }),
};

/** The answer waits only while the queue of starts is full. The sweep starts a workflow that was missed. */
export const createSubscription = route({
  operationId: 'createSubscription',
  method: 'post',
  path: '/subscription/create',
  tag: 'Subscriptions',
  summary: 'Create a subscription',
  description:
    'Send the payer to `fwdUrl`. The subscription becomes ACTIVE when the first payment succeeds. ' +
    'With a trial it becomes TRIALING when a payment method is saved. An event reports the change, ' +
    'and the payer’s browser returns to `callbackUrl`. The checkout stays open for 24 hours.',
  idempotencyKey: 'listed',
  body: {
    fields,
    problems: (given, { now }) => [
      ...termsFieldsProblems(given),
      ...(given.testClockId === undefined ? datedProblems(given, now()) : []),
    ],
    examples: {
      'Monthly for a year': {
        amount: 1_999,
        currency: 'USD',
        interval: 'MONTH',
        intervalCount: 1,
        cycleCount: 12,
        customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
        callbackUrl: 'https://merchant.example/thanks',
        description: 'Tea of the month',
        metadata: { plan: 'oolong' },
      },
      'Two weeks of trial, then every quarter': {
        amount: 4_900,
        currency: 'EUR',
        interval: 'MONTH',
        intervalCount: 3,
        cycleCount: 8,
        trialPeriodCount: 2,
        trialPeriodInterval: 'WEEK',
        customerDetails: { email: 'ada@example.com' },
        callbackUrl: 'https://merchant.example/thanks',
      },
    },
  },
  answer: {
    description: 'The subscription was created, with status CREATED.',
    schema: z.object({
      subscriptionId: id('sub', 'subscription'),
      createdAt: dateTime('When the subscription was created.'),
      fwdUrl: url('Where to send the payer to pay.'),
    }),
    examples: {
      Created: {
        subscriptionId: SUBSCRIPTION_ID,
        createdAt: '2026-11-20T12:00:00.000Z',
        fwdUrl: 'https://pay.example/checkout/mYt0kEn',
      },
    },
  },
  refusals: ['operation_not_allowed', 'resource_not_found'],
  limits: gatewayChargeProblems,
  handle: async (call, deps) => {
    const { merchant, body } = call;
    const { terms, customerId, order } = termsAndOrder(body);
    const { testClockId = null, ...stored } = order;
    return writeOnce(call, deps, async (tx) => {
      const createdAt = await creationTime(tx, deps, merchant.id, body, 'share');
      const token = randomToken(deps.random);
      const payer = { customerId, details: order.customerDetails };
      const subscriptionId = await writeSubscription(
        tx,
        deps,
        {
          merchantId: merchant.id,
          customerId: await payerOf(tx, deps, merchant.id, payer),
          terms,
          createdAt,
          testClockId,
        },
        { ...stored, linkId: null },
        token,
      );
      return {
        answer: ok({
          subscriptionId,
          createdAt: formatInstant(createdAt),
          fwdUrl: `${deps.publicUrl}/checkout/${token}`,
        }),
        afterCommit: () => deps.starts.begin({ merchantId: merchant.id, subscriptionId }),
      };
    });
  },
});

/**
 * Returns the time of the test clock that the request names, else real time. `lock`: the clock's row is locked until the
 * transaction ends.
 */
export async function creationTime(
  db: Db,
  { now }: Pick<ApiDeps, 'now'>,
  merchantId: string,
  body: Parameters<typeof datedProblems>[0] & { testClockId: string | undefined },
  lock?: 'share',
): Promise<number> {
  if (body.testClockId === undefined) return now();
  const clock = found(await findTestClock(db, merchantId, body.testClockId, lock), 'test clock');
  refuseProblems(datedProblems(body, clock.targetAt));
  return clock.targetAt;
}

type InitialFields = Pick<
  NewSubscription,
  'merchantId' | 'customerId' | 'terms' | 'createdAt' | 'testClockId'
>;

/** Names every column, so that the compiler finds a new one that a link does not pass on. */
type WholeOrder = SubscriptionOrder & Record<Exclude<keyof SubscriptionOrder, 'sweptAt'>, unknown>;

/** `token`: the checkout's token. The caller must start the workflow after the commit. */
export async function writeSubscription(
  tx: Db,
  { now, random, checkoutExpiryMs }: Pick<ApiDeps, 'now' | 'random' | 'checkoutExpiryMs'>,
  fields: InitialFields,
  order: WholeOrder,
  token: string,
): Promise<string> {
  const subscriptionId = newId('sub', now(), random);
  const checkoutExpiresAt = fields.createdAt + checkoutExpiryMs;
  const checkout = { id: newId('cs', now(), random), token };
  await insertSubscription(tx, { ...fields, subscriptionId, checkoutExpiresAt }, order, checkout);
  return subscriptionId;
}

/**
 * Returns the id of the request's customer. Without an id, creates a customer in the caller's transaction. Throws
 * `resource_not_found` if the merchant has no such customer.
 */
export async function payerOf(
  tx: Db,
  { now, random }: Pick<ApiDeps, 'now' | 'random'>,
  merchantId: string,
  given: { customerId?: string | undefined; details: CustomerDetails },
): Promise<string> {
  const { customerId, details } = given;
  if (customerId !== undefined) {
    const customer = found(await findCustomer(tx, merchantId, customerId), 'customer');
    return customer.id;
  }
  const createdAt = now();
  const id = newId('cus', createdAt, random);
  await insertCustomer(tx, { merchantId, id, details, createdAt });
  return id;
}
