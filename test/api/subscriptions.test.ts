import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHash } from 'node:crypto';
import { checkoutSessions } from '../../db/schema/checkout-sessions.ts';
import { outboxEvents } from '../../db/schema/outbox-events.ts';
import { paymentIntents } from '../../db/schema/payment-intents.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { createApiWorld, PUBLIC_URL, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

interface Created {
  subscriptionId: string;
  createdAt: string;
  fwdUrl: string;
}

async function create(changes: Record<string, unknown> = {}): Promise<Created> {
  const answer = await world.call('POST', '/subscription/create', {
    body: subscriptionBody(changes),
  });
  expect(answer.json).toMatchObject({ subscriptionId: expect.any(String) });
  expect(answer.status).toBe(200);
  return answer.json as Created;
}

async function read(subscriptionId: string): Promise<Record<string, unknown>> {
  const answer = await world.call('GET', `/subscription/get-subscription/${subscriptionId}`);
  expect(answer.status).toBe(200);
  return answer.json as Record<string, unknown>;
}

async function pay({ fwdUrl }: Created, token: string): Promise<void> {
  const path = `${new URL(fwdUrl).pathname}/return?payment_token=${token}`;
  expect((await world.call('GET', path, { as: null })).status).toBe(303);
}

async function eventsOf(subscriptionId: string): Promise<Record<string, unknown>[]> {
  const rows = await world.db
    .select({ body: outboxEvents.body })
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, subscriptionId))
    .orderBy(outboxEvents.sequence);
  return rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
}

test('a create request answers exactly three fields [IF-4.3]', async () => {
  const created = await create();
  expect(Object.keys(created)).toEqual(['subscriptionId', 'createdAt', 'fwdUrl']);
  expect(created.subscriptionId).toMatch(/^sub_[0-9A-Za-z]{22}$/);
  expect(created.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(created.fwdUrl).toMatch(new RegExp(`^${PUBLIC_URL}/checkout/[0-9A-Za-z]{22}$`));
});

test('a new subscription reads as CREATED, without absent fields [IF-4.5, D-10a, D-34]', async () => {
  const { subscriptionId, createdAt } = await create();
  expect(await read(subscriptionId)).toEqual({
    subscriptionId,
    customerId: expect.stringMatching(/^cus_/),
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    remainingCycleCount: 12,
    currency: 'USD',
    amount: 1_999,
    presentmentCurrency: 'USD',
    createdAt,
    status: 'CREATED',
    nextPaymentDate: null,
    currentPeriodEnd: null,
  });
});

test('a subscription reads with every given field [IF-2.3, D-02, D-14]', async () => {
  const given = subscriptionBody({
    currency: 'jpy',
    amount: 500,
    upfrontAmount: 200,
    interval: 'WEEK',
    intervalCount: 2,
    cycleCount: 1,
    description: 'Tea of the week',
    receiptId: 'r-1',
    phoneNumberRequired: null,
    cancelUrl: null,
    productPage: { name: 'Tea', description: null },
  });
  const metadata = '{"z":"last","order":"7","with blank":"","__proto__":"x","a":"first"}';
  const raw = JSON.stringify(given).replace(/\}$/, `,"metadata":${metadata}}`);
  const made = await world.call('POST', '/subscription/create', { raw });
  const { subscriptionId } = made.json as Created;
  const answer = await world.call('GET', `/subscription/get-subscription/${subscriptionId}`);

  expect(answer.json).toMatchObject({
    currency: 'JPY',
    amount: 500,
    presentmentCurrency: 'JPY',
    upfrontAmount: 200,
    interval: 'WEEK',
    intervalCount: 2,
    cycleCount: 1,
    description: 'Tea of the week',
  });
  expect(answer.text).toContain(`"metadata":${metadata}`);
});

test('metadata is accepted with 50 pairs, keys of 40 and values of 500 characters [IF-8]', async () => {
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, at) => [String(at).padStart(40, 'k'), 'v'.repeat(500)]),
  );
  const { subscriptionId } = await create({ metadata, amount: 101, cycleCount: 1_000 });
  expect((await read(subscriptionId))['metadata']).toEqual(metadata);
});

test('a subscription with a trial reads with its length and has no intent yet [D-§4]', async () => {
  const { subscriptionId } = await create({ trialPeriodCount: 7, trialPeriodInterval: 'DAY' });
  expect(await read(subscriptionId)).toMatchObject({
    trialPeriodCount: 7,
    trialPeriodInterval: 'DAY',
    status: 'CREATED',
  });
  const intents = await world.db
    .select()
    .from(paymentIntents)
    .where(eq(paymentIntents.subscriptionId, subscriptionId));
  expect(intents).toEqual([]);
  expect((await eventsOf(subscriptionId)).map((event) => event['eventType'])).toEqual([
    'subscription.created',
  ]);
});

test('a subscription has no trial when the count is 0 or absent [D-12]', async () => {
  for (const changes of [
    { trialPeriodCount: 0, trialPeriodInterval: 'DAY' },
    { trialPeriodInterval: 'DAY', upfrontAmount: 500 },
  ]) {
    const { subscriptionId } = await create(changes);
    const subscription = await read(subscriptionId);
    expect(subscription).not.toHaveProperty('trialPeriodCount');
    expect(subscription).not.toHaveProperty('trialPeriodInterval');
  }
});

test('the first intent has the upfront amount, and two events follow in order [D-51, D-52]', async () => {
  const { subscriptionId, createdAt } = await create({
    upfrontAmount: 500,
    receiptId: 'r-2',
    metadata: { order: '9' },
  });
  const [intent] = await world.db
    .select()
    .from(paymentIntents)
    .where(eq(paymentIntents.subscriptionId, subscriptionId));
  expect(intent).toMatchObject({
    id: expect.stringMatching(/^in_/),
    cycleNumber: 1,
    amountMinor: 500,
    currency: 'USD',
    status: 'CREATED',
    receiptId: 'r-2',
    createdAt: Date.parse(createdAt),
  });
  expect(await eventsOf(subscriptionId)).toEqual([
    {
      eventId: expect.stringMatching(/^evt_/),
      eventType: 'intent.created',
      eventTime: Date.parse(createdAt),
      sequence: 1,
      intentId: intent!.id,
      status: 'CREATED',
      amount: 500,
      currency: 'USD',
      presentmentCurrency: 'USD',
      receiptId: 'r-2',
      subscriptionId,
      paymentMethod: null,
      card: null,
      customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
      errorCode: null,
      errorMessage: null,
      metadata: { order: '9' },
    },
    {
      eventId: expect.stringMatching(/^evt_/),
      eventType: 'subscription.created',
      eventTime: Date.parse(createdAt),
      sequence: 2,
      subscriptionId,
      customerId: expect.stringMatching(/^cus_/),
      status: 'CREATED',
      amount: 1_999,
      currency: 'USD',
      intentId: null,
      cycleNumber: null,
      remainingCycleCount: 12,
      nextPaymentDate: null,
      currentPeriodEnd: null,
      metadata: { order: '9' },
    },
  ]);
});

test('a subscription uses the given customer unchanged, or creates one [D-11]', async () => {
  const made = await world.call('POST', '/customer/create', {
    body: { customerDetails: { name: 'Bob' } },
  });
  const { customerId } = made.json as { customerId: string };
  const withGiven = await create({ customerId });
  const withoutOne = await create({ customerDetails: { name: 'Carol' } });

  expect((await read(withGiven.subscriptionId))['customerId']).toBe(customerId);
  expect((await world.call('GET', `/customer/${customerId}`)).json).toEqual({
    customerId,
    customerDetails: { name: 'Bob' },
  });
  const newCustomerId = (await read(withoutOne.subscriptionId))['customerId'] as string;
  expect((await world.call('GET', `/customer/${newCustomerId}`)).json).toEqual({
    customerId: newCustomerId,
    customerDetails: { name: 'Carol' },
  });
});

test('a checkout token is stored only as its hash', async () => {
  const { subscriptionId, fwdUrl } = await create();
  const token = fwdUrl.split('/').at(-1)!;
  const [session] = await world.db
    .select()
    .from(checkoutSessions)
    .where(eq(checkoutSessions.subscriptionId, subscriptionId));
  expect(session!.tokenHash).toEqual(createHash('sha256').update(token).digest());
  expect(session!.expiresAt - session!.createdAt).toBe(24 * 3_600_000);
});

test('a create request succeeds when the workflow start after the commit fails', async () => {
  world.workflows.faults.isDown = true;
  const { subscriptionId } = await create();
  world.workflows.faults.isDown = false;

  expect(world.workflows.calls.at(-1)).toEqual({
    name: 'start',
    ref: { merchantId: world.merchant.merchantId, subscriptionId },
  });
  const [row] = await world.db
    .select()
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  expect(row).toMatchObject({
    workflowStartedAt: null,
    version: 1,
    lastTransitionId: `${subscriptionId}:1`,
  });
});

test('a paid subscription reads with card, next date and remaining cycles [IF-2.3, D-34]', async () => {
  const created = await create();
  await pay(created, 'tok_paid');
  const subscription = await read(created.subscriptionId);
  expect(subscription).toMatchObject({
    status: 'ACTIVE',
    remainingCycleCount: 11,
    paymentMetadata: {
      paymentMethod: 'CARD',
      cardMetadata: {
        brand: 'visa',
        country: 'US',
        lastFourDigit: '4242',
        expiryMonth: 12,
        expiryYear: 2034,
      },
    },
  });
  expect(subscription['nextPaymentDate']).toBe(subscription['currentPeriodEnd']);
  expect(subscription).not.toHaveProperty('endReason');
});

test('a cancel keeps the paid period, and a second cancel is refused [IF-4.7, D-16, D-34]', async () => {
  const created = await create();
  await pay(created, 'tok_cancelled_later');
  const { subscriptionId } = created;
  const { currentPeriodEnd } = await read(subscriptionId);
  const cancel = () =>
    world.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });

  const first = await cancel();
  const second = await cancel();

  expect([first.status, first.text]).toEqual([200, '{}']);
  expect(second.status).toBe(400);
  expect(second.json).toEqual({
    errorCode: 'operation_not_allowed',
    errorDescription: 'A subscription that is ENDED cannot be cancelled.',
  });
  expect(await read(subscriptionId)).toMatchObject({
    status: 'ENDED',
    endReason: 'cancelled',
    nextPaymentDate: null,
    currentPeriodEnd,
  });
});
