import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eq } from 'drizzle-orm';
import { checkoutSessions } from '../../db/schema/checkout-sessions.ts';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld, CallOptions } from './api-world.ts';
import {
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
import {
  comparable,
  createSubscription,
  subscriptionIn,
  readSubscription,
} from './subscription-fixtures.ts';
import type { CreatedSubscription } from './subscription-fixtures.ts';

/** POST /payments/cancel/{xIntentId}. Idempotency keys: payment-keys.test.ts. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterEach(() => {
  world.payments.faults.card = null;
  world.clock.aheadMs = 0;
});
afterAll(() => world.close());

const cancel = (intentId: string, options: CallOptions = {}) =>
  world.call('POST', `/payments/cancel/${intentId}`, options);

/** Ids of a subscription's intents, newest first. */
async function intentsOf({ subscriptionId }: CreatedSubscription): Promise<string[]> {
  const list = await world.call('GET', '/payments?limit=100');
  const { data } = list.json as { data: { xIntentId: string; subscriptionId?: string }[] };
  return data.filter((it) => it.subscriptionId === subscriptionId).map((it) => it.xIntentId);
}

test.each<[string, (id: string) => CallOptions]>([
  ['without a body', () => ({})],
  ['with an empty body of type JSON', () => ({ headers: { 'content-type': 'application/json' } })],
  ['with an empty object', () => ({ body: {} })],
  ['with the id of the path', (xIntentId) => ({ body: { xIntentId } })],
  ['with a null id', () => ({ body: { xIntentId: null } })],
])('an unpaid hosted payment is cancelled %s [IF-4.11, D-14, D-16, D-41]', async (_, options) => {
  const { xIntentId } = await makeHosted(world);
  const answer = await cancel(xIntentId, options(xIntentId));
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'CANCELLED' });
});

test('a cancellation is refused when its body names another intent [IF-4.11, D-14]', async () => {
  const { xIntentId } = await makeHosted(world);
  const wrong = [{ xIntentId: UNKNOWN_IDS.intent }, { xIntentId: 7 }, []];
  const texts = [];
  for (const body of wrong) texts.push((await cancel(xIntentId, { body })).json);
  expect(texts).toEqual([
    { errorCode: 'bad_request', errorDescription: 'xIntentId: must equal the id in the path' },
    { errorCode: 'bad_request', errorDescription: 'xIntentId: must be a string' },
    { errorCode: 'bad_request', errorDescription: 'body: must be a JSON object' },
  ]);
  expect(await readIntent(world, xIntentId)).toMatchObject({ status: 'CREATED' });
});

test('a cancellation is refused when its body is not empty and not of type JSON [D-10, D-14]', async () => {
  const { xIntentId } = await makeHosted(world);
  const answer = await cancel(xIntentId, {
    raw: JSON.stringify({ xIntentId }),
    headers: { 'content-type': 'text/plain' },
  });
  expect(answer.json).toEqual({
    errorCode: 'bad_request',
    errorDescription: 'body: must be sent with Content-Type: application/json',
  });
});

test('a subscription ends when its unpaid first intent is cancelled [IF-4.11, D-§4, D-34]', async () => {
  const subscription = await createSubscription(world);
  const [intentId] = await intentsOf(subscription);
  const answer = await cancel(intentId!);
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(await readIntent(world, intentId!)).toMatchObject({ status: 'CANCELLED' });
  expect(await readSubscription(world, subscription)).toMatchObject({
    status: 'ENDED',
    endReason: 'checkout_cancelled',
  });
});

const NOT_OPEN = 'The checkout of this payment intent is not open.';
const NO_PAGE = 'Only a payment whose page is open can be cancelled.';

test.each(['ACTIVE', 'UNPAID', 'PAUSED', 'ENDED'] as const)(
  'the first payment of a subscription that is %s is not cancelled [D-41]',
  async (status) => {
    const subscription = await subscriptionIn(world, status);
    const first = (await intentsOf(subscription)).at(-1)!;
    const before = await readIntent(world, first);
    expect(outcome(await cancel(first))).toEqual(refusal(NOT_OPEN));
    expect(await readIntent(world, first)).toEqual(before);
    expect(await readSubscription(world, subscription)).toMatchObject({ status });
  },
);

test('a cancellation is refused for a later cycle, which has no checkout [D-41]', async () => {
  const subscription = await subscriptionIn(world, 'UNPAID');
  const second = (await intentsOf(subscription))[0]!;
  expect(await readIntent(world, second)).toMatchObject({ status: 'FAILED' });
  expect(outcome(await cancel(second))).toEqual(refusal(NO_PAGE));
});

test('a cancellation of a first payment is refused when its checkout has expired [D-41]', async () => {
  const subscription = await createSubscription(world);
  const [intentId] = await intentsOf(subscription);
  world.clock.aheadMs = 24 * 3_600_000;
  expect(outcome(await cancel(intentId!))).toEqual(refusal(NOT_OPEN));
});

test('a cancellation is refused for a paid, declined or unknown charge [D-41]', async () => {
  const charge = async (card: string) => {
    world.payments.faults.card = card;
    const body = tokenisedBody(await saveCard(world));
    const made = await world.call('POST', '/payments/charge-tokenised-pm', { body });
    return (made.json as { intentId: string }).intentId;
  };
  const ids = [await makePaid(world), await charge('card_declined'), await charge('unknown')];
  for (const id of ids) {
    const before = await readIntent(world, id);
    expect(outcome(await cancel(id))).toEqual(refusal(NO_PAGE));
    expect(await readIntent(world, id)).toEqual(before);
  }
});

test.each([
  ['tok-good', 'SUCCESS', 'The payment was made.'],
  ['tok-unknown', 'PENDING', 'A charge is on its way; its outcome is not known yet.'],
])(
  'a hosted payment charged with %s is %s and cannot be cancelled [D-41]',
  async (card, status, message) => {
    const { xIntentId: intentId } = await makeHosted(world);
    await payHosted(intentId, card);
    expect(outcome(await cancel(intentId))).toEqual(refusal(message));
    expect(await readIntent(world, intentId)).toMatchObject({ status });
  },
);

test('a hosted payment stays open after a decline and can be cancelled [D-41]', async () => {
  const { xIntentId: intentId } = await makeHosted(world);
  await payHosted(intentId, 'tok-card_declined');
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'FAILED' });
  expect(outcome(await cancel(intentId))).toEqual([200, {}]);
  expect(await readIntent(world, intentId)).toMatchObject({ status: 'CANCELLED' });
});

/** Pays as the payment page does when the payer returns from the card form. */
async function payHosted(intentId: string, card: string): Promise<void> {
  const { merchantId } = world.merchant;
  const [session] = await world.db
    .select({ id: checkoutSessions.id })
    .from(checkoutSessions)
    .where(eq(checkoutSessions.intentId, intentId));
  const token = { paymentToken: `${card}-${intentId}`, checkoutSessionId: session!.id };
  await world.payments.pay({ merchantId, intentId, token });
}

test('a cancellation is refused after an earlier one and after the page expired [D-41]', async () => {
  const OVER = 'The payment is cancelled, or its page has expired.';
  const [once, expired] = [await makeHosted(world), await makeHosted(world)];
  await cancel(once.xIntentId);
  expect(outcome(await cancel(once.xIntentId))).toEqual(refusal(OVER));

  world.clock.aheadMs = 24 * 3_600_000;
  expect(outcome(await cancel(expired.xIntentId))).toEqual(refusal(OVER));
  expect(await readIntent(world, expired.xIntentId)).toMatchObject({ status: 'CANCELLED' });
});

test('a cancellation answers a foreign intent exactly as an unknown one [D-21, D-41]', async () => {
  const { xIntentId } = await makeHosted(world, 'other');
  const rows = await world.countRows();
  const foreign = await cancel(xIntentId);
  expect(comparable(foreign)).toEqual(comparable(await cancel(UNKNOWN_IDS.intent)));
  expect(comparable(foreign)).toEqual(comparable(await cancel('in_%00')));
  expect(outcome(foreign)).toEqual(notFoundAnswer('payment intent'));
  expect(await world.countRows()).toEqual(rows);
});
