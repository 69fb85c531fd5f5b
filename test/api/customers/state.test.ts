import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import { makeCustomer, saveCard } from '../../support/fixtures/payments.ts';
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
