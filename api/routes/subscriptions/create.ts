import { z } from 'zod';
import type { Db } from '../../../db/client.ts';
import { findTestClock } from '../../../db/repositories/merchants/test-clocks.ts';
import { formatInstant } from '../../../domain/calendar.ts';
import { randomToken } from '../../../domain/ids.ts';
import { dateTime, EXTENSION, id, url } from '../../answer-fields.ts';
import { found, ok } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { idText, optional } from '../../fields.ts';
import { refuseProblems } from '../../http/body.ts';
import { writeOnce } from '../../http/idempotency.ts';
import { payerOf, writeSubscription } from '../../new-orders.ts';
import { route } from '../../http/route.ts';
import {
  datedProblems,
  termsAndOrder,
  termsFields,
  termsFieldsProblems,
  gatewayTermsProblems,
} from './fields.ts';
import { SUBSCRIPTION_ID } from './read.ts';

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
  limits: gatewayTermsProblems,
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
        stored,
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
