import { expect } from 'vitest';
import { sessionOf } from '../../support/hosted-pages/checkouts.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment, CallOptions } from '../../support/api-environment.ts';
import {
  makeHosted,
  makePaid,
  UNKNOWN_IDS,
  outcome,
  readIntent,
  refusal,
  saveCard,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import {
  createSubscription,
  subscriptionIn,
  readSubscription,
} from '../../support/fixtures/subscriptions.ts';
import type { CreatedSubscription } from '../../support/fixtures/subscriptions.ts';

/** Tests POST /payments/cancel/{xIntentId}. More tests, with idempotency keys, are in idempotency-keys.test.ts. */

const cancel = (api: ApiEnvironment, intentId: string, options: CallOptions = {}) =>
  api.call('POST', `/payments/cancel/${intentId}`, options);

/** Ids of a subscription's intents, newest first. */
async function intentsOf(
  api: ApiEnvironment,
  { subscriptionId }: CreatedSubscription,
): Promise<string[]> {
  const list = await api.call('GET', '/payments?limit=100');
  const { data } = list.json as { data: { xIntentId: string; subscriptionId?: string }[] };
  return data.filter((it) => it.subscriptionId === subscriptionId).map((it) => it.xIntentId);
}

test.for<[string, (id: string) => CallOptions]>([
  ['without a body', () => ({})],
  ['with an empty body of type JSON', () => ({ headers: { 'content-type': 'application/json' } })],
  ['with an empty object', () => ({ body: {} })],
  ['with the id of the path', (xIntentId) => ({ body: { xIntentId } })],
  ['with a null id', () => ({ body: { xIntentId: null } })],
])(
  'an unpaid hosted payment is cancelled by a request %s [IF-4.11, D-14, D-16, D-41, IF-1]',
  async ([, options], { api }) => {
    const { xIntentId } = await makeHosted(api);
    const answer = await cancel(api, xIntentId, options(xIntentId));
    expect([answer.status, answer.text]).toEqual([200, '{}']);
    expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CANCELLED' });
  },
);

test('a cancellation is refused when its body names another intent [IF-4.11, D-14]', async ({
  api,
}) => {
  const { xIntentId } = await makeHosted(api);
  const wrong = [{ xIntentId: UNKNOWN_IDS.intent }, { xIntentId: 7 }, []];
  const texts = [];
  for (const body of wrong) texts.push((await cancel(api, xIntentId, { body })).json);
  expect(texts).toEqual([
    { errorCode: 'bad_request', errorDescription: 'xIntentId: must equal the id in the path' },
    { errorCode: 'bad_request', errorDescription: 'xIntentId: must be a string' },
    { errorCode: 'bad_request', errorDescription: 'body: must be a JSON object' },
  ]);
  expect(await readIntent(api, xIntentId)).toMatchObject({ status: 'CREATED' });
});

test('a subscription ends when its unpaid first intent is cancelled [IF-4.11, D-§4, D-34]', async ({
  api,
}) => {
  const subscription = await createSubscription(api);
  const [intentId] = await intentsOf(api, subscription);
  const answer = await cancel(api, intentId!);
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(await readIntent(api, intentId!)).toMatchObject({ status: 'CANCELLED' });
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ENDED',
    endReason: 'checkout_cancelled',
  });
});

const NOT_OPEN = 'The checkout of this payment intent is not open.';
const NO_PAGE = 'Only a payment whose page is open can be cancelled.';

test.for(['ACTIVE', 'UNPAID', 'PAUSED', 'ENDED'] as const)(
  'a cancellation is refused for the first payment of a subscription that is %s [D-41]',
  async (status, { api }) => {
    const subscription = await subscriptionIn(api, status);
    const first = (await intentsOf(api, subscription)).at(-1)!;
    const before = await readIntent(api, first);
    expect(outcome(await cancel(api, first))).toEqual(refusal(NOT_OPEN));
    expect(await readIntent(api, first)).toEqual(before);
    expect(await readSubscription(api, subscription)).toMatchObject({ status });
  },
);

test('a cancellation is refused for a later cycle, which has no checkout [D-41]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'UNPAID');
  const second = (await intentsOf(api, subscription))[0]!;
  expect(await readIntent(api, second)).toMatchObject({ status: 'FAILED' });
  expect(outcome(await cancel(api, second))).toEqual(refusal(NO_PAGE));
});

test('a cancellation is refused for a charge that is paid, declined or of unknown outcome [D-41]', async ({
  api,
}) => {
  const charge = async (card: string) => {
    api.orders.faults.card = card;
    const body = tokenisedBody(await saveCard(api));
    const made = await api.call('POST', '/payments/charge-tokenised-pm', { body });
    return (made.json as { intentId: string }).intentId;
  };
  const ids = [await makePaid(api), await charge('card_declined'), await charge('unknown')];
  for (const id of ids) {
    const before = await readIntent(api, id);
    expect(outcome(await cancel(api, id))).toEqual(refusal(NO_PAGE));
    expect(await readIntent(api, id)).toEqual(before);
  }
});

test.for<[string, string, string]>([
  ['tok-good', 'SUCCESS', 'The payment has succeeded.'],
  ['tok-unknown', 'PENDING', 'A charge was sent, and its outcome is not known yet.'],
])(
  'a hosted payment charged with %s is %s and cannot be cancelled [D-41, IF-3]',
  async ([card, status, message], { api }) => {
    const { xIntentId: intentId } = await makeHosted(api);
    await payHosted(api, intentId, card);
    expect(outcome(await cancel(api, intentId))).toEqual(refusal(message));
    expect(await readIntent(api, intentId)).toMatchObject({ status });
  },
);

test('a hosted payment stays open after a decline and can be cancelled [D-41, D-40]', async ({
  api,
}) => {
  const { xIntentId: intentId } = await makeHosted(api);
  await payHosted(api, intentId, 'tok-card_declined');
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'FAILED' });
  expect(outcome(await cancel(api, intentId))).toEqual([200, {}]);
  expect(await readIntent(api, intentId)).toMatchObject({ status: 'CANCELLED' });
});

/** Pays as the payment page does when the payer returns from the card form. */
async function payHosted(api: ApiEnvironment, intentId: string, card: string): Promise<void> {
  const { merchantId } = api.merchant;
  const session = await sessionOf(api, intentId, 'intentId');
  const token = { paymentToken: `${card}-${intentId}`, checkoutSessionId: session.id };
  await api.orders.execute('payment', { merchantId, intentId, token });
}

test('a cancellation is refused after an earlier cancellation and after the page has expired [D-41, D-40]', async ({
  api,
}) => {
  const OVER = 'The payment is cancelled, or its page has expired.';
  const [once, expired] = [await makeHosted(api), await makeHosted(api)];
  await cancel(api, once.xIntentId);
  expect(outcome(await cancel(api, once.xIntentId))).toEqual(refusal(OVER));

  api.clock.aheadMs = 24 * 3_600_000;
  expect(outcome(await cancel(api, expired.xIntentId))).toEqual(refusal(OVER));
  expect(await readIntent(api, expired.xIntentId)).toMatchObject({ status: 'CANCELLED' });
});
