import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { makeCustomer, outcome, saveCard } from '../../support/fixtures/payments.ts';
import { createSubscription, readSubscription } from '../../support/fixtures/subscriptions.ts';

/** Creates a customer with `customerDetails`. Returns the details that a read shows, as JSON text. */
async function createAndRead(api: ApiEnvironment, customerDetails: unknown): Promise<string> {
  const made = await api.call('POST', '/customer/create', { body: { customerDetails } });
  expect(made.status).toBe(200);
  const { customerId, ...rest } = made.json as { customerId: string };
  expect(customerId).toMatch(/^cus_[0-9A-Za-z]{22}$/);
  expect(rest).toEqual({});
  const read = await api.call('GET', `/customer/${customerId}`);
  expect(read.status).toBe(200);
  expect(Object.keys(read.json as object)).toEqual(['customerId', 'customerDetails']);
  return JSON.stringify((read.json as { customerDetails: unknown }).customerDetails);
}

test('a read returns a customer with every field exactly as given [IF-4.1, IF-4.2, D-10a, IF-1, IF-2.1]', async ({
  api,
}) => {
  const details = {
    name: 'Zoë Łukasz 😀',
    email: 'zoe+tea@example.co.uk',
    contactNumber: '+44 20 7946 0000',
    customerAddress: {
      addressLine1: '1 High Street',
      addressLine2: 'Flat 2',
      city: 'London',
      state: 'Greater London',
      country: 'GB',
      postalCode: 'N1 9GU',
    },
  };
  expect(await createAndRead(api, details)).toBe(JSON.stringify(details));
});

test('a customer is accepted with an address of only country and postal code [IF-2.2]', async ({
  api,
}) => {
  const details = { customerAddress: { country: 'DE', postalCode: '10115' } };
  expect(await createAndRead(api, details)).toBe(JSON.stringify(details));
});

test('a read returns the fields of a customer in the given order [D-10a]', async ({ api }) => {
  const details = {
    email: 'ada@example.com',
    customerAddress: { postalCode: 'N1', country: 'GB', city: 'London' },
    name: 'Ada',
  };
  expect(await createAndRead(api, details)).toBe(JSON.stringify(details));
});

test('a customer is accepted without any detail [D-11, IF-2.1]', async ({ api }) => {
  expect(await createAndRead(api, {})).toBe('{}');
});

test('a read returns the nulls and empty texts of a customer as given [D-10a]', async ({ api }) => {
  const details = { name: '', email: null, customerAddress: null };
  expect(await createAndRead(api, details)).toBe(JSON.stringify(details));
});

test('unknown fields of a customer are not stored [D-10]', async ({ api }) => {
  expect(await createAndRead(api, { name: 'Ada', cardNumber: '4242424242424242' })).toBe(
    '{"name":"Ada"}',
  );
});

/** GET /customer/{customerId}/payment-method-tokens: the list of a customer's saved payment methods. */

const read = (api: ApiEnvironment, customerId: string) =>
  api.call('GET', `/customer/${customerId}/payment-method-tokens`);

test('the list of saved methods has only the customer’s LIVE and DELETED methods, newest first [D-§7]', async ({
  api,
}) => {
  const at = Date.UTC(2026, 10, 1);
  const first = await saveCard(api, { at });
  const { customerId } = first;
  const last = await saveCard(api, { customerId, at: at + 2_000 });
  const deleted = await saveCard(api, { customerId, at: at + 1_000, status: 'DELETED' });
  await saveCard(api, { customerId, at: at + 3_000, status: 'PENDING' });
  await saveCard(api);

  const card = { brand: 'visa', lastFourDigit: '4242', expiryMonth: 7, expiryYear: 2031 };
  const shown = (pmId: string, status: string, createdAt: number) => ({
    paymentMethodId: pmId,
    paymentMethod: 'CARD',
    cardMetadata: card,
    customerId,
    status,
    createdAt,
  });
  expect(outcome(await read(api, customerId))).toEqual([
    200,
    {
      data: [
        shown(last.pmId, 'LIVE', 1_793_491_202_000),
        shown(deleted.pmId, 'DELETED', 1_793_491_201_000),
        shown(first.pmId, 'LIVE', 1_793_491_200_000),
      ],
    },
  ]);
});

test('the list of saved methods is empty for a customer without a saved method [D-§7]', async ({
  api,
}) => {
  expect((await read(api, await makeCustomer(api))).text).toBe('{"data":[]}');
});

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
