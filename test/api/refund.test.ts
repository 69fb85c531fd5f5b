import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eq } from 'drizzle-orm';
import { outboxEvents } from '../../db/schema/outbox-events.ts';
import { refunds } from '../../db/schema/refunds.ts';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld, CallOptions } from './api-world.ts';
import {
  UNAVAILABLE,
  makeHosted,
  makePaid,
  UNKNOWN_IDS,
  notFoundAnswer,
  outcome,
  readIntent,
  refusal,
  saveCard,
  tokenisedBody,
} from './payment-fixtures.ts';
import { comparable, subscriptionIn } from './subscription-fixtures.ts';

/** POST /payments/merchant/refund. Idempotency keys: payment-keys.test.ts. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterEach(() => {
  world.payments.faults.refund = null;
  world.payments.faults.card = null;
  world.payments.faults.isDown = false;
  world.payments.faults.losesOutcome = false;
});
afterAll(() => world.close());

const refund = (xIntentId: string, changes: object = {}, options: CallOptions = {}) =>
  world.call('POST', '/payments/merchant/refund', { body: { xIntentId, ...changes }, ...options });

test('a refund without an amount refunds the whole payment [D-§7]', async () => {
  const intentId = await makePaid(world);
  const answer = await refund(intentId);
  const { refundId, refundedAt } = answer.json as { refundId: string; refundedAt: number };
  expect(refundId).toMatch(/^rf_[0-9A-Za-z]{22}$/);
  expect(Number.isSafeInteger(refundedAt)).toBe(true);
  expect(outcome(answer)).toEqual([
    200,
    { refundId, intentId, amount: 2_500, currency: 'USD', refundedAt },
  ]);
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'REFUNDED', amount: 2_500 });
  const moves = world.payments.refunds.filter(({ key }) => key.includes(refundId));
  expect(moves).toEqual([{ key: `refund:${refundId}`, amountMinor: 2_500 }]);
});

test('partial refunds, as number or text, never exceed the payment [D-§7, D-40]', async () => {
  const intentId = await makePaid(world);
  expect((await refund(intentId, { amount: 900 })).json).toMatchObject({ amount: 900 });
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'PARTIALLY_REFUNDED' });
  expect((await refund(intentId, { amount: '600' })).json).toMatchObject({ amount: 600 });
  expect(outcome(await refund(intentId, { amount: 1_001 }))).toEqual(
    refusal('No more than 10.00 USD is left to refund.'),
  );
  expect((await refund(intentId, { amount: null })).json).toMatchObject({ amount: 1_000 });
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'REFUNDED' });
  expect(outcome(await refund(intentId))).toEqual(
    refusal('All of this payment is refunded, or on its way back.'),
  );

  const events = await world.db
    .select()
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, intentId))
    .orderBy(outboxEvents.sequence);
  expect(events.map(({ type }) => type)).toEqual([
    'intent.created',
    'intent.success',
    'intent.refunded',
    'intent.refunded',
    'intent.refunded',
  ]);
});

test('parallel refunds never exceed the payment [D-§7]', async () => {
  const intentId = await makePaid(world);
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => refund(intentId, { amount: 700 })),
  );
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'PARTIALLY_REFUNDED' });
});

test('the payment of a cycle can be refunded, and the subscription stays ACTIVE [D-§7]', async () => {
  const { subscriptionId } = await subscriptionIn(world, 'ACTIVE');
  const list = await world.call('GET', '/payments?limit=1');
  const [intent] = (list.json as { data: { xIntentId: string; subscriptionId: string }[] }).data;
  expect(intent!.subscriptionId).toBe(subscriptionId);
  expect((await refund(intent!.xIntentId)).json).toMatchObject({ amount: 1_999 });
  const subscription = await world.call('GET', `/subscription/get-subscription/${subscriptionId}`);
  expect(subscription.json).toMatchObject({ status: 'ACTIVE' });
});

const NOT_PAID = 'Only a payment that was made is refunded.';

test('a refund is refused for an intent that is not paid [D-§7]', async () => {
  const charge = async (card: string) => {
    world.payments.faults.card = card;
    const made = await world.call('POST', '/payments/charge-tokenised-pm', {
      body: tokenisedBody(await saveCard(world)),
    });
    return (made.json as { intentId: string }).intentId;
  };
  const ids = [
    (await makeHosted(world)).xIntentId,
    await charge('card_declined'),
    await charge('unknown'),
  ];
  for (const id of ids) {
    expect(outcome(await refund(id))).toEqual(refusal(NOT_PAID));
  }
});

test('a refund that the gateway refuses answers 400 and can be repeated [D-§7]', async () => {
  const intentId = await makePaid(world);
  world.payments.faults.refund = 'refused';
  const refused = await refund(intentId);
  expect(refused.status).toBe(400);
  expect(refused.json).toMatchObject({ errorCode: 'operation_not_allowed' });
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'SUCCESS' });
  world.payments.faults.refund = null;
  expect((await refund(intentId)).json).toMatchObject({ amount: 2_500 });
});

test('a refund of unknown outcome is pending until its key returns the refund [D-17, D-§7]', async () => {
  const intentId = await makePaid(world);
  world.payments.faults.refund = 'unknown';
  const first = await refund(intentId, {}, { key: 'pending' });
  expect(outcome(first)).toEqual([
    400,
    {
      errorCode: 'payment_outcome_pending',
      errorDescription: 'The outcome of a payment is not known yet. Try again shortly.',
    },
  ]);
  // The open refund reserves the whole amount.
  expect(outcome(await refund(intentId))).toEqual(
    refusal('All of this payment is refunded, or on its way back.'),
  );
  world.payments.faults.refund = null;
  const second = await refund(intentId, {}, { key: 'pending' });
  expect(second.headers['idempotent-replayed']).toBeUndefined();
  expect(second.json).toMatchObject({ intentId, amount: 2_500 });
  expect((await refund(intentId, {}, { key: 'pending' })).text).toBe(second.text);
});

test('a refund without a key is withdrawn while Temporal is unavailable [D-17]', async () => {
  const intentId = await makePaid(world);
  world.payments.faults.isDown = true;
  expect(outcome(await refund(intentId))).toEqual(UNAVAILABLE);
  world.payments.faults.isDown = false;
  const rows = await world.db.select().from(refunds).where(eq(refunds.intentId, intentId));
  expect(rows.map(({ state }) => state)).toEqual(['REFUSED']);
  expect((await refund(intentId)).json).toMatchObject({ amount: 2_500 });
});

test('a refund is pending when it was made and its answer was lost [D-17, D-§7]', async () => {
  const intentId = await makePaid(world);
  world.payments.faults.losesOutcome = true;
  expect((await refund(intentId)).json).toMatchObject({ errorCode: 'payment_outcome_pending' });
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'REFUNDED' });
});

test('a refund answers a foreign intent exactly as an unknown one [D-21]', async () => {
  const theirs = await makePaid(world, 'other');
  const rows = await world.countRows();
  const foreign = await refund(theirs);
  expect(comparable(foreign)).toEqual(comparable(await refund(UNKNOWN_IDS.intent)));
  expect(outcome(foreign)).toEqual(notFoundAnswer('payment intent'));
  expect(await world.countRows()).toEqual(rows);
});
