import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROUTES } from '../../api/routes.ts';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const ORDER = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
  callbackUrl: 'https://merchant.example/thanks',
};

const create = (fields: object) =>
  world.call('POST', '/subscription/create', { body: { ...ORDER, ...fields } });

const read = async (answer: { json: unknown }) => {
  const { subscriptionId } = answer.json as { subscriptionId: string };
  return (await world.call('GET', `/subscription/get-subscription/${subscriptionId}`)).json;
};

test('an optional field that is an empty string counts as absent [D-10]', async () => {
  const created = await create({
    description: '',
    cancelUrl: '',
    upfrontAmount: '',
    trialPeriodCount: '',
    trialPeriodInterval: '',
    metadata: '',
    customerId: '',
    productPage: '',
    customerDetails: { email: '', customerAddress: { country: '' } },
  });
  expect(created.status).toBe(200);
  const shown = await read(created);
  for (const name of ['description', 'upfrontAmount', 'trialPeriodCount', 'metadata']) {
    expect(shown).not.toHaveProperty(name);
  }
  const refused = await create({ callbackUrl: '', currency: '' });
  expect([refused.status, refused.json]).toEqual([
    400,
    {
      errorCode: 'bad_request',
      errorDescription:
        'currency: must be a three-letter ISO 4217 currency code; ' +
        'callbackUrl: must be an absolute http or https URL',
    },
  ]);
});

test('a country code is accepted in any case and returned as given [D-10]', async () => {
  const customerDetails = { customerAddress: { country: 'gB' } };
  const made = await world.call('POST', '/customer/create', { body: { customerDetails } });
  const { customerId } = made.json as { customerId: string };
  const { json } = await world.call('GET', `/customer/${customerId}`);
  expect(json).toEqual({ customerId, customerDetails });
});

test('the answer names the ignored fields of the body [D-10]', async () => {
  const named = await create({
    colour: 'red',
    customerDetails: { name: 'Ada', title: 'Dr', customerAddress: { planet: 'Earth' } },
    metadata: { anything: 'goes' },
    'größe\r\n': 1,
  });
  expect(named.status).toBe(200);
  expect(named.headers['ignored-fields']).toBe(
    'customerDetails.title, customerDetails.customerAddress.planet, colour, gr%C3%B6%C3%9Fe%0D%0A',
  );
  expect((await create({})).headers).not.toHaveProperty('ignored-fields');
});

test.each(ROUTES.map(({ method, path }) => [method.toUpperCase(), path]))(
  'an unknown query parameter is refused by %s %s [D-10]',
  async (method, template) => {
    const path = template.replaceAll(/:\w+/g, 'whatever');
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
    const answer = await world.call(method, `${path}?stauts=ACTIVE`, body);
    expect([answer.status, answer.json]).toEqual([
      400,
      {
        errorCode: 'bad_request',
        errorDescription: 'stauts: is not a parameter of this request',
      },
    ]);
  },
);

test.each([
  ['GET', '/customer'],
  ['GET', '/nothing/here'],
  ['DELETE', '/subscription/create'],
])('wrong credentials are 401 at %s %s [D-20a]', async (method, path) => {
  const wrong = { keyId: world.merchant.keyId, secret: 'sk_test_wrong' };
  const answer = await world.call(method, path, { as: wrong });
  expect([answer.status, answer.json]).toEqual([
    401,
    {
      errorCode: 'unauthorized',
      errorDescription: 'The credentials are missing or not valid.',
    },
  ]);
});
