import { expect } from 'vitest';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import { makePaid, readIntent } from '../../support/fixtures/payments.ts';
import {
  createSubscription,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

/** What a merchant sent comes back in the record. */

test('a subscription shows its order id and its test clock [D-§7]', async ({ api }) => {
  const testClockId = await createClock(api, Date.UTC(2027, 0, 1));
  const created = await createSubscription(api, { receiptId: 'order-9', testClockId });
  expect(await readSubscription(api, created)).toMatchObject({ receiptId: 'order-9', testClockId });
  const without = await readSubscription(api, await createSubscription(api));
  expect(without).not.toHaveProperty('receiptId');
  expect(without).not.toHaveProperty('testClockId');
});

test('an intent shows its kind, its customer and the comments on a one-time charge [D-§7]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const { customerId } = await readSubscription(api, subscription);
  const charged = await api.call('POST', '/subscription/merchant/one-time-charge', {
    body: { ...subscription, amount: 700, currency: 'USD', comments: 'Two extra seats' },
  });
  const { intentId } = charged.json as { intentId: string };
  expect(await readIntent(api, intentId)).toMatchObject({
    kind: 'one_time',
    customerId,
    comments: 'Two extra seats',
  });
  expect(await readIntent(api, await makePaid(api))).toMatchObject({ kind: 'tokenised' });
});

test('the intent of a first cycle is of the kind upfront when it has an amount of its own [D-§7]', async ({
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

test('the intent of a subscription without a description shows its callbackUrl [D-§7]', async ({
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
