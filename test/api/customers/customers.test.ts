import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { subscriptions } from '../../../db/schema/subscriptions.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  makeCustomer,
  notFoundAnswer,
  outcome,
  refusal,
  saveCard,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import {
  createSubscription,
  readSubscription,
  subscriptionIn,
} from '../../support/fixtures/subscriptions.ts';

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

test('an empty address of a payer counts as absent [D-10]', async ({ api }) => {
  const customerDetails = { name: 'Ada Example', customerAddress: '' };
  const created = await api.call('POST', '/subscription/create', {
    raw: JSON.stringify(subscriptionBody({ customerDetails })),
  });
  expect(created.status).toBe(200);
  const { subscriptionId } = created.json as { subscriptionId: string };
  const rows = await api.db
    .select({ customerDetails: subscriptions.customerDetails })
    .from(subscriptions)
    .where(eq(subscriptions.id, subscriptionId));
  expect(rows).toEqual([{ customerDetails: { name: 'Ada Example' } }]);
});

test('unknown fields of a customer are not stored [D-10]', async ({ api }) => {
  expect(await createAndRead(api, { name: 'Ada', cardNumber: '4242424242424242' })).toBe(
    '{"name":"Ada"}',
  );
});

/** GET /customer/{customerId}/payment-method-tokens: the list of a customer's saved payment methods. */

const read = (api: ApiEnvironment, customerId: string, query = '') =>
  api.call('GET', `/customer/${customerId}/payment-method-tokens${query}`);

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
      metadata: {},
    },
  ]);

  const ids = async (query: string) => {
    const { data, metadata } = (await read(api, customerId, query)).json as {
      data: { paymentMethodId: string }[];
      metadata: { offset?: string };
    };
    return { ids: data.map(({ paymentMethodId }) => paymentMethodId), ...metadata };
  };
  expect(await ids('?status=LIVE&limit=100')).toEqual({ ids: [last.pmId, first.pmId] });
  const page = await ids('?limit=2');
  expect(page.ids).toEqual([last.pmId, deleted.pmId]);
  expect(await ids(`?limit=2&offset=${page.offset}`)).toEqual({ ids: [first.pmId] });
});

test('the list of saved methods is empty for a customer without a saved method [D-§7]', async ({
  api,
}) => {
  expect((await read(api, await makeCustomer(api))).text).toBe('{"data":[],"metadata":{}}');
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

test('a change of a customer replaces the given details and keeps the others [D-§7, D-10a]', async ({
  api,
}) => {
  const change = (customerDetails: object) =>
    api.call('PUT', `/customer/${customerId}`, { body: { customerDetails } });
  const address = { addressLine1: '1 High Street', country: 'GB', postalCode: 'N1 9GU' };
  const made = await api.call('POST', '/customer/create', {
    body: { customerDetails: { name: 'Ada', email: 'ada@old.example', customerAddress: address } },
  });
  const { customerId } = made.json as { customerId: string };
  const moved = { name: 'Ada', email: 'ada@new.example', customerAddress: { country: 'DE' } };
  expect(
    outcome(await change({ email: 'ada@new.example', customerAddress: { country: 'DE' } })),
  ).toEqual([200, { customerId, customerDetails: moved }]);
  expect(outcome(await change({ name: null }))).toEqual([
    200,
    { customerId, customerDetails: { ...moved, name: null } },
  ]);
  expect(outcome(await change({ email: 'no address' }))).toEqual([
    400,
    {
      errorCode: 'bad_request',
      errorDescription: 'customerDetails.email: must be an e-mail address',
    },
  ]);
  const found = async (email: string) => {
    const { json } = await api.call('GET', `/customer?email=${email}`);
    return (json as { data: { customerId: string }[] }).data.map((each) => each.customerId);
  };
  expect(await found('ADA@new.example')).toEqual([customerId]);
  expect(await found('ada@old.example')).toEqual([]);
});

test('a saved method is deleted unless a subscription charges it, and the refusal names the subscription [D-§7, D-36]', async ({
  api,
}) => {
  const remove = (customerId: string, pmId: string) =>
    api.call('DELETE', `/customer/${customerId}/payment-method-tokens/${pmId}`);
  const unused = await saveCard(api);
  expect(outcome(await remove(unused.customerId, unused.pmId))).toEqual([200, {}]);
  expect(outcome(await remove(unused.customerId, unused.pmId))).toEqual([200, {}]);
  expect((await read(api, unused.customerId, '?status=LIVE')).text).toBe(
    '{"data":[],"metadata":{}}',
  );
  const charged = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: tokenisedBody(unused),
  });
  expect(outcome(charged)).toEqual(notFoundAnswer('payment method'));

  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
  const { customerId } = (await readSubscription(api, { subscriptionId })) as {
    customerId: string;
  };
  const { data } = (await read(api, customerId)).json as { data: { paymentMethodId: string }[] };
  const used = data[0]!.paymentMethodId;
  expect(outcome(await remove(customerId, used))).toEqual(
    refusal(
      `The subscription ${subscriptionId} charges this payment method. Replace the method there, or cancel the subscription.`,
    ),
  );
  expect(outcome(await remove(unused.customerId, used))).toEqual(notFoundAnswer('payment method'));
  await api.call('POST', '/subscription/merchant/cancel', { body: { subscriptionId } });
  expect(outcome(await remove(customerId, used))).toEqual([200, {}]);
});
