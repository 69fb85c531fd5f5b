import { expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { PUBLIC_URL, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  intentBody,
  makeCustomer,
  makeHosted,
  makePaid,
  readIntent,
} from '../../support/fixtures/payments.ts';
import { declineNext, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { eventsOf } from '../../support/fixtures/events.ts';

/** Tests POST /payments/create-intent and GET /payments/v2/get-intent/{xIntentId}. */

const create = (api: ApiEnvironment, changes: object = {}) =>
  api.call('POST', '/payments/create-intent', { body: intentBody(changes) });

const EVERYTHING = {
  receiptId: 'order-7',
  description: 'A blue bicycle',
  cancelUrl: 'https://merchant.example/cancelled',
  paymentMethods: ['APPLE_PAY', 'CARD', 'APPLE_PAY', 'BANK_TRANSFER'],
  metadata: { order: '7', b: '', a: 'x' },
  productPage: { name: 'Blue bicycle', description: 'With a bell' },
  phoneNumberRequired: true,
  storeFrontId: 'sf_shop',
  tokenise: true,
};

test('the answer to a new hosted payment is its record with the URL of its page [D-§7, D-43]', async ({
  api,
}) => {
  const answer = await create(api, EVERYTHING);
  const { fwdUrl, ...record } = answer.json as {
    fwdUrl: string;
    xIntentId: string;
    unavailablePaymentMethods: string[];
  };
  expect(answer.status).toBe(200);
  expect(fwdUrl.startsWith(`${PUBLIC_URL}/payment/`)).toBe(true);
  expect(fwdUrl.slice(`${PUBLIC_URL}/payment/`.length)).toMatch(/^[0-9A-Za-z]{22}$/);
  expect(record).toEqual({
    xIntentId: expect.stringMatching(/^in_[0-9A-Za-z]{22}$/) as string,
    customerId: expect.stringMatching(/^cus_[0-9A-Za-z]{22}$/) as string,
    kind: 'hosted',
    amount: 2_500,
    currency: 'USD',
    presentmentCurrency: 'USD',
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string,
    status: 'CREATED',
    receiptId: 'order-7',
    description: 'A blue bicycle',
    callbackUrl: 'https://merchant.example/back?order=7',
    cancelUrl: 'https://merchant.example/cancelled',
    metadata: { order: '7', b: '', a: 'x' },
    productPage: { name: 'Blue bicycle', description: 'With a bell' },
    paymentMethod: null,
    cardMetadata: null,
    chargeAttempts: [],
    unavailablePaymentMethods: ['APPLE_PAY', 'BANK_TRANSFER'],
  });
  const { unavailablePaymentMethods: _, ...stored } = record;
  const read = await readIntent(api, record.xIntentId);
  expect(JSON.stringify(read)).toBe(JSON.stringify(stored));

  const [row] = await api.db
    .select()
    .from(paymentIntents)
    .where(eq(paymentIntents.id, record.xIntentId));
  expect(row).toMatchObject({
    kind: 'hosted',
    paymentMethods: ['CARD'],
    phoneNumberRequired: true,
    tokenise: true,
    storeFrontId: 'sf_shop',
  });
  const session = await sessionOf(api, record.xIntentId, 'intentId');
  expect(session).toMatchObject({ purpose: 'payment', expiresAt: row!.checkoutExpiresAt });
});

test('a new hosted payment emits intent.created in its own event stream, and wakes the delivery of this stream [D-51, D-52]', async ({
  api,
}) => {
  const { xIntentId } = await makeHosted(api);
  const events = await eventsOf(api, xIntentId);
  expect(events.map(({ type, sequence }) => [type, sequence])).toEqual([['intent.created', 1]]);
  expect(api.workflows.calls.at(-1)).toEqual({
    name: 'wakeStream',
    ref: { merchantId: api.merchant.merchantId, streamId: xIntentId },
  });
});

test('a read of a hosted payment omits the optional fields that the request omitted [D-10a]', async ({
  api,
}) => {
  const { xIntentId } = await makeHosted(api);
  expect(Object.keys(await readIntent(api, xIntentId))).toEqual([
    'xIntentId',
    'customerId',
    'kind',
    'amount',
    'currency',
    'presentmentCurrency',
    'customerDetails',
    'createdAt',
    'status',
    'callbackUrl',
    'paymentMethod',
    'cardMetadata',
    'chargeAttempts',
  ]);
});

test('a hosted payment uses the customer that the request names, or creates a customer [D-11]', async ({
  api,
}) => {
  const customerId = await makeCustomer(api);
  const before = await api.countRows();
  expect((await create(api, { customerId })).status).toBe(200);
  expect((await api.countRows())['customer']).toBe(before['customer']);
  expect((await create(api)).status).toBe(200);
  expect((await api.countRows())['customer']).toBe(before['customer']! + 1);
});

test('a read of an unpaid hosted payment returns CANCELLED after 24 hours [D-40]', async ({
  api,
}) => {
  const { xIntentId } = await makeHosted(api);
  api.clock.aheadMs = 24 * 3_600_000 - 60_000;
  expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CREATED' });
  api.clock.aheadMs = 24 * 3_600_000 + 60_000;
  expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CANCELLED' });
});

test('a read of a paid intent has the instant and the attempt of its payment [D-§7]', async ({
  api,
}) => {
  const intent = await readIntent(api, await makePaid(api));
  expect(intent).toMatchObject({ status: 'SUCCESS', succeededAt: expect.any(Number) as number });
  const { chargeAttempts, succeededCharge } = intent as Record<string, unknown[]>;
  expect(chargeAttempts).toEqual([
    { attempt: 1, status: 'SUCCESS', createdAt: expect.any(String) as string },
  ]);
  expect(succeededCharge).toEqual(chargeAttempts![0]);
});

test('a read of the payment intent of a cycle has its attempts and its subscription’s fields [D-§7, D-40]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE', {
    description: 'Blue plan',
    receiptId: 'plan-1',
    cancelUrl: 'https://merchant.example/no',
    metadata: { plan: 'blue' },
  });
  await declineNext(api, subscription, 'insufficient_funds');
  await api.call('POST', '/subscription/manual-retry', {
    body: { subscriptionId: subscription.subscriptionId },
  });
  const list = await api.call('GET', '/payments?limit=100');
  const { data } = list.json as { data: { subscriptionId?: string; xIntentId: string }[] };
  const mine = data.filter(({ subscriptionId }) => subscriptionId === subscription.subscriptionId);
  expect(mine).toHaveLength(2);
  const second = await readIntent(api, mine[0]!.xIntentId);
  expect(second).toMatchObject({
    amount: 1_999,
    currency: 'USD',
    status: 'SUCCESS',
    receiptId: 'plan-1',
    description: 'Blue plan',
    callbackUrl: 'https://merchant.example/back?order=7',
    cancelUrl: 'https://merchant.example/no',
    subscriptionId: subscription.subscriptionId,
    metadata: { plan: 'blue' },
    chargeAttempts: [
      {
        attempt: 1,
        status: 'FAILED',
        errorCode: 'insufficient_funds',
        errorMessage: 'The account does not hold enough money for this payment.',
      },
      { attempt: 2, status: 'SUCCESS' },
    ],
    succeededCharge: { attempt: 2, status: 'SUCCESS' },
  });
  expect(second).toEqual(mine[0]);
});
