import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eq } from 'drizzle-orm';
import { checkoutSessions } from '../../db/schema/checkout-sessions.ts';
import { outboxEvents } from '../../db/schema/outbox-events.ts';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { createApiWorld, PUBLIC_URL } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import {
  intentBody,
  makeCustomer,
  makeHosted,
  makePaid,
  UNKNOWN_IDS,
  notFoundAnswer,
  outcome,
  readIntent,
} from './payment-fixtures.ts';
import { comparable, declineNext, subscriptionIn } from './subscription-fixtures.ts';

/** POST /payments/create-intent and GET /payments/v2/get-intent/{xIntentId}. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterEach(() => {
  world.clock.aheadMs = 0;
});
afterAll(() => world.close());

const create = (changes: object = {}) =>
  world.call('POST', '/payments/create-intent', { body: intentBody(changes) });

const EVERYTHING = {
  receiptId: 'order-7',
  description: 'A blue bicycle',
  cancelUrl: 'https://merchant.example/cancelled',
  paymentMethods: ['APPLE_PAY', 'CARD', 'APPLE_PAY', 'BANK_TRANSFER'],
  metadata: { order: '7', b: '', a: 'x' },
  phoneNumberRequired: true,
  storeFrontId: 'sf_shop',
  tokenise: true,
};

test('a hosted payment is created, and the answer is its record with the page URL [D-§7]', async () => {
  const answer = await create(EVERYTHING);
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
    chargeAttempts: [],
    unavailablePaymentMethods: ['APPLE_PAY', 'BANK_TRANSFER'],
  });
  const { unavailablePaymentMethods: _, ...stored } = record;
  const read = await readIntent(world, record.xIntentId);
  expect(JSON.stringify(read)).toBe(JSON.stringify(stored));

  const [row] = await world.db
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
  const [session] = await world.db
    .select()
    .from(checkoutSessions)
    .where(eq(checkoutSessions.intentId, record.xIntentId));
  expect(session).toMatchObject({ purpose: 'payment', expiresAt: row!.checkoutExpiresAt });
});

test('a hosted payment emits its event in its own stream, and wakes the stream [D-51, D-52]', async () => {
  const { xIntentId } = await makeHosted(world);
  const events = await world.db
    .select()
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, xIntentId));
  expect(events.map(({ type, sequence }) => [type, sequence])).toEqual([['intent.created', 1]]);
  expect(world.workflows.calls.at(-1)).toEqual({
    name: 'wakeStream',
    ref: { merchantId: world.merchant.merchantId, streamId: xIntentId },
  });
});

test('a hosted payment reads without the fields that were not given [D-10a]', async () => {
  const { xIntentId } = await makeHosted(world);
  expect(Object.keys(await readIntent(world, xIntentId))).toEqual([
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
    'chargeAttempts',
  ]);
});

test('a hosted payment uses the merchant’s named customer, or creates one [D-11]', async () => {
  const customerId = await makeCustomer(world);
  const before = await world.countRows();
  expect((await create({ customerId })).status).toBe(200);
  expect((await world.countRows())['customer']).toBe(before['customer']);
  expect((await create()).status).toBe(200);
  expect((await world.countRows())['customer']).toBe(before['customer']! + 1);

  const foreign = await create({ customerId: await makeCustomer(world, 'other') });
  const unknown = await create({ customerId: UNKNOWN_IDS.customer });
  expect(comparable(foreign)).toEqual(comparable(unknown));
  expect(outcome(foreign)).toEqual(notFoundAnswer('customer'));
});

test('an unpaid hosted payment reads CANCELLED after 24 hours [D-40]', async () => {
  const { xIntentId } = await makeHosted(world);
  world.clock.aheadMs = 24 * 3_600_000 - 60_000;
  expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'CREATED' });
  world.clock.aheadMs = 24 * 3_600_000 + 60_000;
  expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'CANCELLED' });
});

test('a paid intent reads with the instant and the attempt of its payment [D-§7]', async () => {
  const intent = await readIntent(world, await makePaid(world));
  expect(intent).toMatchObject({ status: 'SUCCESS', succeededAt: expect.any(Number) as number });
  const { chargeAttempts, succeededCharge } = intent as Record<string, unknown[]>;
  expect(chargeAttempts).toEqual([
    { attempt: 1, status: 'SUCCESS', createdAt: expect.any(String) as string },
  ]);
  expect(succeededCharge).toEqual(chargeAttempts![0]);
});

test('a cycle’s intent reads with its attempts and its subscription’s fields [D-§7, D-40]', async () => {
  const subscription = await subscriptionIn(world, 'ACTIVE', {
    description: 'Blue plan',
    receiptId: 'plan-1',
    cancelUrl: 'https://merchant.example/no',
    metadata: { plan: 'blue' },
  });
  await declineNext(world, subscription, 'insufficient_funds');
  await world.call('POST', '/subscription/manual-retry', {
    body: { subscriptionId: subscription.subscriptionId },
  });
  const list = await world.call('GET', '/payments?limit=100');
  const { data } = list.json as { data: { subscriptionId?: string; xIntentId: string }[] };
  const mine = data.filter(({ subscriptionId }) => subscriptionId === subscription.subscriptionId);
  expect(mine).toHaveLength(2);
  const second = await readIntent(world, mine[0]!.xIntentId);
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

test('a read answers a foreign intent exactly as an unknown one [D-21]', async () => {
  const { xIntentId } = await makeHosted(world, 'other');
  const read = (id: string) => world.call('GET', `/payments/v2/get-intent/${id}`);
  const foreign = await read(xIntentId);
  expect(comparable(foreign)).toEqual(comparable(await read(UNKNOWN_IDS.intent)));
  expect(outcome(foreign)).toEqual(notFoundAnswer('payment intent'));
});
