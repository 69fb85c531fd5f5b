import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import {
  makeCustomer,
  notFoundAnswer,
  outcome,
  saveCard,
  UNKNOWN_IDS,
} from '../../support/fixtures/payments.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';

test('the state of a customer has its subscriptions, newest first, and its LIVE payment methods [D-§7]', async ({
  api,
}) => {
  const customerId = await makeCustomer(api);
  const { pmId } = await saveCard(api, { customerId });
  await saveCard(api, { customerId, status: 'DELETED' });
  const first = await createSubscription(api, { customerId });
  const second = await createSubscription(api, { customerId });
  await createSubscription(api);
  const answer = await api.call('GET', `/customer/${customerId}/state`);
  const { currentPeriodEnd, nextPaymentDate } = await readSubscription(api, first);
  const state = { status: 'CREATED', currentPeriodEnd, nextPaymentDate };
  expect(answer.json).toEqual({
    customerId,
    subscriptions: [
      { subscriptionId: second.subscriptionId, ...state },
      { subscriptionId: first.subscriptionId, ...state },
    ],
    paymentMethods: [expect.objectContaining({ paymentMethodId: pmId, status: 'LIVE' })],
  });
});

test('a read of a customer’s state refuses another merchant’s customer exactly as an unknown one [D-21]', async ({
  api,
}) => {
  const answer = await api.call('GET', `/customer/${UNKNOWN_IDS.customer}/state`);
  expect(outcome(answer)).toEqual(notFoundAnswer('customer'));
  const customerId = await makeCustomer(api);
  const foreign = await api.call('GET', `/customer/${customerId}/state`, { as: api.other });
  expect(foreign.text).toBe(answer.text);
});
