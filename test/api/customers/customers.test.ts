import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';

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
