import { expect } from 'vitest';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import { eventsOf } from '../../support/fixtures/events.ts';
import {
  makeHosted,
  makePaid,
  readIntent,
  saveCard,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import {
  createSubscription,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

/** Tests fields of subscriptions and intents in reads, and of intents in events. */

test('a subscription shows its receiptId and its testClockId [D-§7]', async ({ api }) => {
  const testClockId = await createClock(api, Date.UTC(2027, 0, 1));
  const created = await createSubscription(api, { receiptId: 'order-9', testClockId });
  expect(await readSubscription(api, created)).toMatchObject({ receiptId: 'order-9', testClockId });
  const without = await readSubscription(api, await createSubscription(api));
  expect(without).not.toHaveProperty('receiptId');
  expect(without).not.toHaveProperty('testClockId');
});

test('the intent of a first cycle has the kind upfront when the subscription has an upfrontAmount [D-§7]', async ({
  api,
}) => {
  const kinds = [];
  for (const changes of [{}, { upfrontAmount: 900 }]) {
    const body = subscriptionBody(changes);
    const created = await api.call('POST', '/subscription/create', { body });
    const { subscriptionId } = created.json as { subscriptionId: string };
    const list = await api.call('GET', `/payments?subscriptionId=${subscriptionId}`);
    const { data } = list.json as { data: { kind: string; amount: number }[] };
    kinds.push(data.map(({ kind, amount }) => [kind, amount]));
  }
  expect(kinds).toEqual([[['cycle', 1_999]], [['upfront', 900]]]);
});

test('the events of an intent show its kind and its comments as a read does [D-52]', async ({
  api,
}) => {
  const bodies = async (streamId: string, intentId: string) =>
    (await eventsOf(api, streamId))
      .map(({ body }) => JSON.parse(body) as Record<string, unknown>)
      .filter((event) => event['intentId'] === intentId)
      .map((event) => [event['eventType'], event['kind'], event['comments']]);

  const subscription = await subscriptionIn(api, 'ACTIVE');
  const charged = await api.call('POST', '/subscription/merchant/one-time-charge', {
    body: { ...subscription, amount: 700, currency: 'USD', comments: 'Two extra seats' },
  });
  const oneTime = (charged.json as { intentId: string }).intentId;
  expect(await bodies(subscription.subscriptionId, oneTime)).toEqual([
    ['intent.created', 'one_time', 'Two extra seats'],
    ['intent.success', 'one_time', 'Two extra seats'],
  ]);

  const method = await saveCard(api);
  api.orders.faults.card = 'insufficient_funds';
  const declined = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: tokenisedBody(method),
  });
  api.orders.faults.card = null;
  const tokenised = (declined.json as { intentId: string }).intentId;
  expect(await bodies(tokenised, tokenised)).toEqual([
    ['intent.created', 'tokenised', null],
    ['intent.failed', 'tokenised', null],
  ]);

  const { xIntentId: hosted } = await makeHosted(api);
  expect(await bodies(hosted, hosted)).toEqual([['intent.created', 'hosted', null]]);
});

test('an intent shows the card of its latest attempt with the same fields as the list of saved methods [D-§7]', async ({
  api,
}) => {
  const { xIntentId } = await makeHosted(api);
  expect(await readIntent(api, xIntentId)).toMatchObject({
    status: 'CREATED',
    paymentMethod: null,
    cardMetadata: null,
  });

  const method = await saveCard(api);
  api.orders.faults.card = 'insufficient_funds';
  const declined = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: tokenisedBody(method),
  });
  api.orders.faults.card = null;
  const { intentId } = declined.json as { intentId: string };
  const read = await readIntent(api, intentId);
  const { paymentMethod, cardMetadata } = read;
  expect({ paymentMethod, cardMetadata }).toEqual({
    paymentMethod: 'CARD',
    cardMetadata: { brand: 'visa', lastFourDigit: '4242', expiryMonth: 7, expiryYear: 2031 },
  });
  const tokens = await api.call('GET', `/customer/${method.customerId}/payment-method-tokens`);
  expect(tokens.json).toMatchObject({ data: [{ paymentMethod, cardMetadata }] });
  const list = await api.call('GET', `/payments?customerId=${method.customerId}`);
  expect(list.json).toMatchObject({ data: [read] });
});

test('the intent of a subscription shows the subscription’s callbackUrl, also without a description [D-§7]', async ({
  api,
}) => {
  const { subscriptionId } = await createSubscription(api, {
    callbackUrl: 'https://m.example/back',
  });
  const list = await api.call('GET', `/payments?subscriptionId=${subscriptionId}`);
  expect(list.json).toMatchObject({ data: [{ callbackUrl: 'https://m.example/back' }] });
});

test('an intent shows the amount refunded so far [D-§7]', async ({ api }) => {
  const intentId = await makePaid(api);
  expect(await readIntent(api, intentId)).not.toHaveProperty('refundedAmount');
  const refunded = await api.call('POST', '/payments/merchant/refund', {
    body: { xIntentId: intentId, amount: 900 },
  });
  expect(refunded.status).toBe(200);
  expect(await readIntent(api, intentId)).toMatchObject({
    status: 'PARTIALLY_REFUNDED',
    refundedAmount: 900,
  });
});
