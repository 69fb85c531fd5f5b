import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { createHash } from 'node:crypto';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { intentsOf, makeCustomer } from '../../support/fixtures/payments.ts';
import { PUBLIC_URL, subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { expectError } from '../../support/answers.ts';
import { eventsOf } from '../../support/fixtures/events.ts';
import { readSubscription } from '../../support/fixtures/subscriptions.ts';
import { comeBack } from '../../support/hosted-pages/visits.ts';

interface Created {
  subscriptionId: string;
  createdAt: string;
  fwdUrl: string;
}

async function create(
  api: ApiEnvironment,
  changes: Record<string, unknown> = {},
): Promise<Created> {
  const answer = await api.call('POST', '/subscription/create', {
    body: subscriptionBody(changes),
  });
  expect(answer.json).toMatchObject({ subscriptionId: expect.any(String) });
  expect(answer.status).toBe(200);
  return answer.json as Created;
}

async function pay(api: ApiEnvironment, { fwdUrl }: Created, token: string): Promise<void> {
  const answer = await comeBack(api, new URL(fwdUrl).pathname, `payment_token=${token}`);
  expect(answer.status).toBe(303);
}

async function eventBodies(
  api: ApiEnvironment,
  subscriptionId: string,
): Promise<Record<string, unknown>[]> {
  const rows = await eventsOf(api, subscriptionId);
  return rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
}

test('a create request answers exactly three fields [IF-4.3, D-04]', async ({ api }) => {
  const created = await create(api);
  expect(Object.keys(created)).toEqual(['subscriptionId', 'createdAt', 'fwdUrl']);
  expect(created.subscriptionId).toMatch(/^sub_[0-9A-Za-z]{22}$/);
  expect(created.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(created.fwdUrl).toMatch(new RegExp(`^${PUBLIC_URL}/checkout/[0-9A-Za-z]{22}$`));
});

test('a read of a new subscription returns CREATED, without absent fields [IF-4.5, D-10a, D-34]', async ({
  api,
}) => {
  const { subscriptionId, createdAt } = await create(api);
  expect(await readSubscription(api, { subscriptionId })).toEqual({
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

test('a read of a subscription returns the given terms, description and metadata [IF-2.3, D-02, D-14]', async ({
  api,
}) => {
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
  const made = await api.call('POST', '/subscription/create', { raw });
  const { subscriptionId } = made.json as Created;
  const answer = await api.call('GET', `/subscription/get-subscription/${subscriptionId}`);

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

test('a read of a new subscription with a trial returns the length of the trial, and no intent exists [D-§4]', async ({
  api,
}) => {
  const { subscriptionId } = await create(api, { trialPeriodCount: 7, trialPeriodInterval: 'DAY' });
  expect(await readSubscription(api, { subscriptionId })).toMatchObject({
    trialPeriodCount: 7,
    trialPeriodInterval: 'DAY',
    status: 'CREATED',
  });
  expect(await intentsOf(api, subscriptionId)).toEqual([]);
  expect((await eventBodies(api, subscriptionId)).map((event) => event['eventType'])).toEqual([
    'subscription.created',
  ]);
});

test('a subscription has no trial when trialPeriodCount is 0 or absent [D-12]', async ({ api }) => {
  for (const changes of [
    { trialPeriodCount: 0, trialPeriodInterval: 'DAY' },
    { trialPeriodInterval: 'DAY', upfrontAmount: 500 },
  ]) {
    const { subscriptionId } = await create(api, changes);
    const subscription = await readSubscription(api, { subscriptionId });
    expect(subscription).not.toHaveProperty('trialPeriodCount');
    expect(subscription).not.toHaveProperty('trialPeriodInterval');
  }
});

test('upfrontAmount is the amount of the first intent and of intent.created, which precedes subscription.created [D-51, D-52]', async ({
  api,
}) => {
  const { subscriptionId, createdAt } = await create(api, {
    upfrontAmount: 500,
    receiptId: 'r-2',
    metadata: { order: '9' },
  });
  const [intent] = await intentsOf(api, subscriptionId);
  expect(intent).toMatchObject({
    id: expect.stringMatching(/^in_/),
    cycleNumber: 1,
    amountMinor: 500,
    currency: 'USD',
    status: 'CREATED',
    receiptId: 'r-2',
    createdAt: Date.parse(createdAt),
  });
  expect(await eventBodies(api, subscriptionId)).toEqual([
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
      kind: 'upfront',
      comments: null,
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
      actor: 'merchant',
      receiptId: 'r-2',
      metadata: { order: '9' },
    },
  ]);
});

test('a subscription uses the given customer unchanged, or creates one [D-11, D-10]', async ({
  api,
}) => {
  const customerId = await makeCustomer(api, 'merchant', { name: 'Bob' });
  const withGiven = await create(api, { customerId });
  const withoutOne = await create(api, { customerDetails: { name: 'Carol' } });

  expect((await readSubscription(api, withGiven))['customerId']).toBe(customerId);
  expect((await api.call('GET', `/customer/${customerId}`)).json).toEqual({
    customerId,
    customerDetails: { name: 'Bob' },
  });
  const newCustomerId = (await readSubscription(api, withoutOne))['customerId'] as string;
  expect((await api.call('GET', `/customer/${newCustomerId}`)).json).toEqual({
    customerId: newCustomerId,
    customerDetails: { name: 'Carol' },
  });
});

test('a checkout token is stored only as its hash', async ({ api }) => {
  const { subscriptionId, fwdUrl } = await create(api);
  const token = fwdUrl.split('/').at(-1)!;
  const session = await sessionOf(api, subscriptionId);
  expect(session.tokenHash).toEqual(createHash('sha256').update(token).digest());
  expect(session.expiresAt - session.createdAt).toBe(24 * 3_600_000);
});

test('a create request succeeds when the workflow start after the commit fails', async ({
  api,
}) => {
  api.workflows.faults.isDown = true;
  const { subscriptionId } = await create(api);
  api.workflows.faults.isDown = false;

  expect(api.workflows.calls.at(-1)).toEqual({
    name: 'start',
    ref: { merchantId: api.merchant.merchantId, subscriptionId },
  });
  const [row] = await api.db
    .select()
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  expect(row).toMatchObject({
    workflowStartedAt: null,
    version: 1,
    lastTransitionId: `${subscriptionId}:1`,
  });
});

test('a read of a paid subscription returns card, next date and remaining cycles [IF-2.3, D-34]', async ({
  api,
}) => {
  const created = await create(api);
  await pay(api, created, 'tok_paid');
  const subscription = await readSubscription(api, created);
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

test('a cancel keeps the paid period, and a second cancel is refused [IF-4.7, D-16, D-34]', async ({
  api,
}) => {
  const created = await create(api);
  await pay(api, created, 'tok_cancelled_later');
  const { subscriptionId } = created;
  const { currentPeriodEnd } = await readSubscription(api, { subscriptionId });
  const cancel = () =>
    api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });

  const first = await cancel();
  const second = await cancel();

  expect([first.status, first.text]).toEqual([200, '{}']);
  expectError(
    second,
    400,
    'operation_not_allowed',
    'A subscription that is ENDED cannot be cancelled.',
  );
  expect(await readSubscription(api, { subscriptionId })).toMatchObject({
    status: 'ENDED',
    endReason: 'cancelled',
    nextPaymentDate: null,
    currentPeriodEnd,
  });
});
