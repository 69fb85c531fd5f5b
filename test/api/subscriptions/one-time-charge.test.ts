import { expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment, CallOptions } from '../../support/api-environment.ts';
import { UNAVAILABLE, outcome, readIntent, refusal } from '../../support/fixtures/payments.ts';
import { subscriptionIn, readSubscription } from '../../support/fixtures/subscriptions.ts';
import { eventsOf } from '../../support/fixtures/events.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

/**
 * Tests POST /subscription/merchant/one-time-charge. More tests, with idempotency keys, are in
 * test/api/payments/idempotency-keys.test.ts.
 */

const charge = (
  api: ApiEnvironment,
  subscriptionId: string,
  changes: object = {},
  options: CallOptions = {},
) =>
  api.call('POST', '/subscription/merchant/one-time-charge', {
    body: { subscriptionId, amount: 700, currency: 'USD', ...changes },
    ...options,
  });
const idOf = (answer: { json: unknown }) => (answer.json as { intentId: string }).intentId;

test.for(['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED'] as const)(
  'a one-time charge is made while the subscription is %s, without changing the subscription [IF-4.10, D-35, IF-1, IF-2.4]',
  async (status, { api }) => {
    const subscription = await subscriptionIn(api, status);
    const { updatePaymentMethodLink: _, ...before } = await readSubscription(api, subscription);
    const answer = await charge(api, subscription.subscriptionId);
    const intentId = idOf(answer);
    expect(intentId).toMatch(/^in_[0-9A-Za-z]{22}$/);
    expect([answer.status, answer.text]).toEqual([
      200,
      `{"intentId":"${intentId}","status":"SUCCESS","errorCode":null,"errorMessage":null}`,
    ]);
    expect(await readSubscription(api, subscription)).toMatchObject(before);
    expect(api.orders.charges.filter(({ key }) => key.includes(intentId))).toEqual([
      { key: `charge:${intentId}:1`, amountMinor: 700, kind: 'succeeded' },
    ]);
  },
);

test.for(['CREATED', 'ENDED'] as const)(
  'a one-time charge is refused while the subscription is %s [D-35]',
  async (status, { api }) => {
    const { subscriptionId } = await subscriptionIn(api, status);
    const rows = await api.countRows();
    expect(outcome(await charge(api, subscriptionId))).toEqual(
      refusal(`A subscription that is ${status} cannot be charged.`),
    );
    expect(await api.countRows()).toEqual(rows);
  },
);

test('a declined one-time charge answers 200 with FAILED, the decline code and its text [IF-4.10, D-42, IF-2.4]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  api.orders.faults.card = 'card_declined';
  const answer = await charge(api, subscription.subscriptionId);
  expect(outcome(answer)).toEqual([
    200,
    {
      intentId: idOf(answer),
      status: 'FAILED',
      errorCode: 'card_declined',
      errorMessage: 'The card was declined.',
    },
  ]);
  expect(await readSubscription(api, subscription)).toMatchObject({ status: 'ACTIVE' });
});

test('the intent and events of a one-time charge belong to the subscription [D-40, D-52]', async ({
  api,
}) => {
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
  const sent = { comments: 'Two extra seats', currency: 'eur', amount: 1_250 };
  const intentId = idOf(await charge(api, subscriptionId, sent));
  expect(await readIntent(api, intentId)).toMatchObject({
    xIntentId: intentId,
    amount: 1_250,
    currency: 'EUR',
    subscriptionId,
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    status: 'SUCCESS',
  });
  const [row] = await api.db.select().from(paymentIntents).where(eq(paymentIntents.id, intentId));
  expect(row).toMatchObject({ kind: 'one_time', comments: 'Two extra seats', cycleNumber: null });
  const events = await eventsOf(api, subscriptionId);
  expect(events.map(({ type }) => type).slice(-2)).toEqual(['intent.created', 'intent.success']);
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at + 1));
});

test('the intent of a one-time charge is created at the time of the test clock [D-52, D-60]', async ({
  api,
}) => {
  const now = Date.UTC(2027, 0, 31);
  const testClockId = await createClock(api, now);
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE', { testClockId });
  const intentId = idOf(await charge(api, subscriptionId));
  expect(await readIntent(api, intentId)).toMatchObject({
    createdAt: '2027-01-31T00:00:00.000Z',
    succeededAt: now,
  });
});

test('a repeat completes an accepted charge after the subscription ended [D-17, D-35]', async ({
  api,
}) => {
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
  api.orders.faults.isDown = true;
  expect(outcome(await charge(api, subscriptionId, {}, { key: 'finished' }))).toEqual(UNAVAILABLE);
  api.orders.faults.isDown = false;
  await api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });
  expect((await charge(api, subscriptionId, {}, { key: 'finished' })).json).toMatchObject({
    status: 'SUCCESS',
  });
});
