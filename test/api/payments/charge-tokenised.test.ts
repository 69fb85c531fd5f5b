import { expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentIntents } from '../../../db/schema/payments.ts';
import { test as apiTest } from '../../support/api-environment.ts';
import type { CallOptions } from '../../support/api-environment.ts';
import { eventTypes } from '../../support/fixtures/events.ts';
import {
  UNAVAILABLE,
  notFoundAnswer,
  outcome,
  readIntent,
  saveCard,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';

/** Tests POST /payments/charge-tokenised-pm. More tests, with idempotency keys, are in idempotency-keys.test.ts. */

const test = apiTest
  .extend('method', { scope: 'file' }, ({ api }) => saveCard(api))
  .extend(
    'charge',
    { scope: 'file' },
    ({ api, method }) =>
      (changes: object = {}, options: CallOptions = {}) =>
        api.call('POST', PATH, { body: tokenisedBody(method, changes), ...options }),
  );

const PATH = '/payments/charge-tokenised-pm';
const idOf = (answer: { json: unknown }) => (answer.json as { intentId: string }).intentId;

test('a paid tokenised charge answers SUCCESS without an error code [IF-4.12, D-36]', async ({
  api,
  charge,
}) => {
  const answer = await charge();
  const intentId = idOf(answer);
  expect(intentId).toMatch(/^in_[0-9A-Za-z]{22}$/);
  expect([answer.status, answer.text]).toEqual([
    200,
    `{"intentId":"${intentId}","status":"SUCCESS"}`,
  ]);
  expect(api.orders.charges.filter(({ key }) => key.includes(intentId))).toEqual([
    { key: `charge:${intentId}:1`, amountMinor: 2_500, kind: 'succeeded' },
  ]);
  expect(await eventTypes(api, intentId)).toEqual(['intent.created', 'intent.success']);
});

test('a declined tokenised charge answers 200 with FAILED and the decline code [IF-4.12, D-42, IF-3]', async ({
  api,
  charge,
}) => {
  api.orders.faults.card = 'insufficient_funds';
  const answer = await charge();
  const intentId = idOf(answer);
  expect([answer.status, answer.text]).toEqual([
    200,
    `{"intentId":"${intentId}","status":"FAILED","errorCode":"insufficient_funds"}`,
  ]);
  expect(await readIntent(api, intentId)).toMatchObject({
    status: 'FAILED',
    chargeAttempts: [
      {
        attempt: 1,
        status: 'FAILED',
        errorCode: 'insufficient_funds',
        errorMessage: 'The account does not hold enough money for this payment.',
      },
    ],
  });
  expect(await eventTypes(api, intentId)).toEqual(['intent.created', 'intent.failed']);
});

test('a charge of unknown outcome is PENDING until a later repeat with the same key returns SUCCESS [D-17, D-40]', async ({
  api,
  charge,
}) => {
  api.orders.faults.card = 'unknown';
  const first = await charge({}, { key: 'pending' });
  const intentId = idOf(first);
  expect(first.json).toEqual({
    intentId,
    status: 'PENDING',
    errorCode: 'payment_outcome_pending',
  });
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'PENDING' });

  api.orders.faults.card = 'paid';
  const second = await charge({}, { key: 'pending' });
  const third = await charge({}, { key: 'pending' });
  expect(second.json).toEqual({ intentId, status: 'SUCCESS' });
  expect(second.headers['idempotent-replayed']).toBeUndefined();
  expect(third.text).toBe(second.text);
  expect(third.headers['idempotent-replayed']).toBe('true');
  expect(api.orders.charges.filter(({ key }) => key.includes(intentId))).toHaveLength(1);
});

test('a tokenised charge stores known optional fields only [IF-4.12, D-10, D-14, IF-2.10]', async ({
  api,
  charge,
  method,
}) => {
  const extras = { receiptId: 'order-9', metadata: { order: '9' }, storeFrontId: 'sf_shop' };
  const intentId = idOf(await charge({ ...extras, colour: 'red', currency: 'usd' }));
  expect(await readIntent(api, intentId)).toMatchObject({
    amount: 2_500,
    currency: 'USD',
    receiptId: 'order-9',
    metadata: { order: '9' },
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  });
  const [row] = await api.db.select().from(paymentIntents).where(eq(paymentIntents.id, intentId));
  expect(row).toMatchObject({ storeFrontId: 'sf_shop', customerId: method.customerId });
});

test.for(['PENDING', 'DELETED'] as const)(
  'a payment method that is %s is not charged [D-36]',
  async (status, { api, charge }) => {
    const unusable = await saveCard(api, { status });
    expect(outcome(await charge(unusable))).toEqual(notFoundAnswer('payment method'));
  },
);

test('a charge without an idempotency key is voided while Temporal is unavailable [D-17]', async ({
  api,
  charge,
}) => {
  const before = api.orders.charges.length;
  api.orders.faults.isDown = true;
  expect(outcome(await charge({ receiptId: 'withdrawn' }))).toEqual(UNAVAILABLE);
  api.orders.faults.isDown = false;

  const [row] = await api.db
    .select()
    .from(paymentIntents)
    .where(eq(paymentIntents.receiptId, 'withdrawn'));
  expect(row).toMatchObject({ status: 'CANCELLED' });
  const late = await api.orders.execute('payment', {
    merchantId: row!.merchantId,
    intentId: row!.id,
    token: null,
  });
  expect(late.kind).toBe('refused');
  expect(api.orders.charges).toHaveLength(before);
});

test('a charge without an idempotency key is PENDING when its outcome was lost [D-17, D-40]', async ({
  api,
  charge,
}) => {
  api.orders.faults.losesOutcome = true;
  const answer = await charge();
  const intentId = idOf(answer);
  expect(outcome(answer)).toEqual([
    200,
    { intentId, status: 'PENDING', errorCode: 'payment_outcome_pending' },
  ]);
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'SUCCESS' });
});

test('a repeat with the same key returns the charge whose answer was lost [D-17]', async ({
  api,
  charge,
}) => {
  const before = api.orders.charges.length;
  api.orders.faults.losesOutcome = true;
  expect(outcome(await charge({}, { key: 'unheard' }))).toEqual(UNAVAILABLE);
  api.orders.faults.losesOutcome = false;
  expect((await charge({}, { key: 'unheard' })).json).toMatchObject({ status: 'SUCCESS' });
  expect(api.orders.charges).toHaveLength(before + 1);
});
