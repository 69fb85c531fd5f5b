import { expect } from 'vitest';
import { eq } from 'drizzle-orm';
import { paymentIntents, refunds } from '../../../db/schema/payments.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment, CallOptions } from '../../support/api-environment.ts';
import {
  UNAVAILABLE,
  makeHosted,
  makePaid,
  outcome,
  readIntent,
  refusal,
  saveCard,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import { subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { eventually } from '../../support/eventually.ts';
import { gate } from '../../support/gate.ts';
import { eventTypes } from '../../support/fixtures/events.ts';

/** Tests POST /payments/merchant/refund. More tests, with idempotency keys, are in idempotency-keys.test.ts. */

const refund = (
  api: ApiEnvironment,
  xIntentId: string,
  changes: object = {},
  options: CallOptions = {},
) => api.call('POST', '/payments/merchant/refund', { body: { xIntentId, ...changes }, ...options });

test('a refund without an amount refunds the whole payment [D-§7]', async ({ api }) => {
  const intentId = await makePaid(api);
  const answer = await refund(api, intentId);
  const { refundId, refundedAt } = answer.json as { refundId: string; refundedAt: number };
  expect(refundId).toMatch(/^rf_[0-9A-Za-z]{22}$/);
  expect(Number.isSafeInteger(refundedAt)).toBe(true);
  expect(outcome(answer)).toEqual([
    200,
    { refundId, intentId, amount: 2_500, currency: 'USD', refundedAt },
  ]);
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'REFUNDED', amount: 2_500 });
  const moves = api.orders.refunds.filter(({ key }) => key.includes(refundId));
  expect(moves).toEqual([{ key: `refund:${refundId}`, amountMinor: 2_500 }]);
});

test('partial refunds with amounts as number or text never exceed the payment [D-§7, D-40]', async ({
  api,
}) => {
  const intentId = await makePaid(api);
  expect((await refund(api, intentId, { amount: 900 })).json).toMatchObject({ amount: 900 });
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'PARTIALLY_REFUNDED' });
  expect((await refund(api, intentId, { amount: '600' })).json).toMatchObject({ amount: 600 });
  expect(outcome(await refund(api, intentId, { amount: 1_001 }))).toEqual(
    refusal('No more than 10.00 USD is left to refund.'),
  );
  expect((await refund(api, intentId, { amount: null })).json).toMatchObject({ amount: 1_000 });
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'REFUNDED' });
  expect(outcome(await refund(api, intentId))).toEqual(
    refusal('The whole payment is already refunded, or its refund is not finished yet.'),
  );

  expect(await eventTypes(api, intentId)).toEqual([
    'intent.created',
    'intent.success',
    'intent.refunded',
    'intent.refunded',
    'intent.refunded',
  ]);
});

test('a refund of a cycle’s payment leaves the subscription ACTIVE, and is in its timeline [D-§7]', async ({
  api,
}) => {
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
  const list = await api.call('GET', '/payments?limit=1');
  const [intent] = (list.json as { data: { xIntentId: string; subscriptionId: string }[] }).data;
  expect(intent!.subscriptionId).toBe(subscriptionId);
  expect((await refund(api, intent!.xIntentId)).json).toMatchObject({ amount: 1_999 });
  const subscription = await api.call('GET', `/subscription/get-subscription/${subscriptionId}`);
  expect(subscription.json).toMatchObject({ status: 'ACTIVE' });
  const timeline = await api.call('GET', `/subscription/timeline/${subscriptionId}`);
  expect((timeline.json as { data: object[] }).data).toMatchObject([
    { what: 'created' },
    { what: 'cycle 1 paid, 19.99 USD', refunds: [{ amount: 1_999, status: 'SUCCEEDED' }] },
  ]);
});

test('refunds are on their intent and in the list, and both filter by when the money moved [D-§7]', async ({
  api,
}) => {
  const intentId = await makePaid(api);
  const paidAt = Date.UTC(2026, 4, 4);
  await api.db
    .update(paymentIntents)
    .set({ succeededAt: paidAt })
    .where(eq(paymentIntents.id, intentId));
  const answers = [
    await refund(api, intentId, { amount: 900 }),
    await refund(api, intentId, { amount: 600 }),
  ];
  const [first, second] = answers.map(({ json }) => (json as { refundId: string }).refundId);
  const inMay = Date.UTC(2026, 4, 31);
  const inJune = Date.UTC(2026, 5, 1);
  await api.db.update(refunds).set({ refundedAt: inJune }).where(eq(refunds.id, first!));
  await api.db.update(refunds).set({ refundedAt: inMay }).where(eq(refunds.id, second!));

  const listed = async (path: string) => {
    const answer = await api.call('GET', path);
    expect(answer.status).toBe(200);
    const { data, metadata } = answer.json as {
      data: Record<string, unknown>[];
      metadata: { offset?: string };
    };
    return { ids: data.map((each) => each['refundId'] ?? each['xIntentId']), data, ...metadata };
  };
  const ofIntent = await listed(`/refund?intentId=${intentId}`);
  expect(ofIntent.ids).toEqual([second, first]);
  expect(ofIntent.data[0]).toEqual({
    refundId: second,
    intentId,
    amount: 600,
    currency: 'USD',
    status: 'SUCCEEDED',
    createdAt: expect.stringMatching(/Z$/) as string,
    refundedAt: 1_780_185_600_000,
  });
  expect((await readIntent(api, intentId))['refunds']).toEqual(ofIntent.data.toReversed());

  const page = await listed(`/refund?sort=settledAt&limit=1&intentId=${intentId}`);
  expect(page.ids).toEqual([first]);
  const rest = `limit=1&intentId=${intentId}&offset=${page.offset}`;
  expect((await listed(`/refund?sort=settledAt&${rest}`)).ids).toEqual([second]);
  expect(outcome(await api.call('GET', `/refund?${rest}`))).toEqual([
    400,
    { errorCode: 'bad_request', errorDescription: 'offset: is of a list with another sort' },
  ]);
  const may = `settledAfter=${Date.UTC(2026, 4, 1)}&settledBefore=${inJune}`;
  expect((await listed(`/refund?${may}`)).ids).toEqual([second]);
  expect((await listed(`/payments?${may}&sort=settledAt`)).ids).toEqual([intentId]);
  expect(
    (await listed(`/payments?settledAfter=${paidAt + 1}&settledBefore=${inJune}`)).ids,
  ).toEqual([]);
  expect((await listed(`/payments?settledAfter=${paidAt}&settledBefore=${inJune}`)).ids).toEqual([
    intentId,
  ]);
});

const NOT_PAID = 'Only a successful payment can be refunded.';

test('a refund is refused for an intent that is not paid [D-§7]', async ({ api }) => {
  const charge = async (card: string) => {
    api.orders.faults.card = card;
    const made = await api.call('POST', '/payments/charge-tokenised-pm', {
      body: tokenisedBody(await saveCard(api)),
    });
    return (made.json as { intentId: string }).intentId;
  };
  const ids = [
    (await makeHosted(api)).xIntentId,
    await charge('card_declined'),
    await charge('unknown'),
  ];
  for (const id of ids) {
    expect(outcome(await refund(api, id))).toEqual(refusal(NOT_PAID));
  }
});

test('a refund that the gateway refuses answers 400 and can be repeated [D-§7]', async ({
  api,
}) => {
  const intentId = await makePaid(api);
  api.orders.faults.refund = 'refused';
  const refused = await refund(api, intentId);
  expect(refused.status).toBe(400);
  expect(refused.json).toMatchObject({ errorCode: 'operation_not_allowed' });
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'SUCCESS' });
  api.orders.faults.refund = null;
  expect((await refund(api, intentId)).json).toMatchObject({ amount: 2_500 });
});

test('a refund of unknown outcome is pending until a repeat with the same key returns the refund [D-17, D-§7]', async ({
  api,
}) => {
  const intentId = await makePaid(api);
  api.orders.faults.refund = 'unknown';
  const first = await refund(api, intentId, {}, { key: 'pending' });
  expect(outcome(first)).toEqual([
    400,
    {
      errorCode: 'payment_outcome_pending',
      errorDescription: 'The outcome of a payment is not known yet. Try again shortly.',
    },
  ]);
  // The open refund reserves the whole amount.
  expect(outcome(await refund(api, intentId))).toEqual(
    refusal('The whole payment is already refunded, or its refund is not finished yet.'),
  );
  api.orders.faults.refund = null;
  const second = await refund(api, intentId, {}, { key: 'pending' });
  expect(second.headers['idempotent-replayed']).toBeUndefined();
  expect(second.json).toMatchObject({ intentId, amount: 2_500 });
  expect((await refund(api, intentId, {}, { key: 'pending' })).text).toBe(second.text);
});

test('a refund without an idempotency key is voided while Temporal is unavailable [D-17]', async ({
  api,
}) => {
  const intentId = await makePaid(api);
  api.orders.faults.isDown = true;
  expect(outcome(await refund(api, intentId))).toEqual(UNAVAILABLE);
  api.orders.faults.isDown = false;
  const rows = await api.db.select().from(refunds).where(eq(refunds.intentId, intentId));
  expect(rows.map(({ state }) => state)).toEqual(['REFUSED']);
  expect((await refund(api, intentId)).json).toMatchObject({ amount: 2_500 });
});

test('a refund is pending when it was made but its outcome did not reach the API [D-17, D-§7]', async ({
  api,
}) => {
  const intentId = await makePaid(api);
  api.orders.faults.losesOutcome = true;
  expect((await refund(api, intentId)).json).toMatchObject({
    errorCode: 'payment_outcome_pending',
  });
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'REFUNDED' });
});

test('a refund without an idempotency key is pending when it was made and Postgres closes the connections before it is read [D-17, D-§7]', async ({
  createApi,
}) => {
  const api = await createApi();
  const intentId = await makePaid(api);
  const [made, away] = [gate(), gate()];
  api.orders.faults.beforeOutcome = async () => {
    made.open();
    await away.isOpen;
  };
  const asked = refund(api, intentId, { amount: 900 });
  await made.isOpen;
  const answer = await api.withoutDatabase(() => {
    away.open();
    return asked;
  });
  expect(outcome(answer)).toEqual([
    400,
    {
      errorCode: 'payment_outcome_pending',
      errorDescription: 'The outcome of a payment is not known yet. Try again shortly.',
    },
  ]);
  const rows = await eventually(() =>
    api.db.select().from(refunds).where(eq(refunds.intentId, intentId)),
  );
  expect(rows.map(({ state, amountMinor }) => [state, amountMinor])).toEqual([['SUCCEEDED', 900]]);
  const intent = await eventually(() => readIntent(api, intentId));
  expect(intent).toMatchObject({ status: 'PARTIALLY_REFUNDED' });
  expect(api.orders.refunds).toEqual([{ key: `refund:${rows[0]!.id}`, amountMinor: 900 }]);
});
