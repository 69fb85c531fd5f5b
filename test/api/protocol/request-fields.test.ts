import { expect } from 'vitest';
import { ROUTES } from '../../../api/http/frame.ts';
import { expectError } from '../../support/answers.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { readSubscription } from '../../support/fixtures/subscriptions.ts';
import { MONTHLY } from '../../../tools/scripts/client/monthly.ts';

const ORDER = { ...MONTHLY, callbackUrl: 'https://merchant.example/thanks' };

const create = (api: ApiEnvironment, fields: object) =>
  api.call('POST', '/subscription/create', { body: { ...ORDER, ...fields } });

test('an optional field that is an empty string counts as absent [D-10]', async ({ api }) => {
  const created = await create(api, {
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
  const shown = await readSubscription(api, created.json as { subscriptionId: string });
  for (const name of ['description', 'upfrontAmount', 'trialPeriodCount', 'metadata']) {
    expect(shown).not.toHaveProperty(name);
  }
  expect((await create(api, { toString: '', constructor: '' })).status).toBe(200);
  const refused = await create(api, { callbackUrl: '', currency: '' });
  expectError(
    refused,
    400,
    'bad_request',
    'currency: must be a three-letter ISO 4217 currency code; ' +
      'callbackUrl: must be an absolute http or https URL',
  );
});

test('texts of the maximum length in code points are accepted in one body [IF-8]', async ({
  api,
}) => {
  const metadata = Object.fromEntries(
    Array.from({ length: 50 }, (_, pair) => [
      `${pair}`.padStart(2, '0') + '😀'.repeat(38),
      '𠮷'.repeat(500),
    ]),
  );
  const customerDetails = { name: '𠮷'.repeat(255) };
  const created = await create(api, { metadata, customerDetails, receiptId: '😀'.repeat(255) });
  expect(created.status).toBe(200);
  const shown = await readSubscription(api, created.json as { subscriptionId: string });
  expect(shown).toMatchObject({ metadata });
});

test('a text of one code point more than the maximum is refused [IF-8]', async ({ api }) => {
  const refused = await create(api, {
    receiptId: '😀'.repeat(256),
    metadata: { plan: '𠮷'.repeat(501) },
    callbackUrl: `https://merchant.example/${'😀'.repeat(2_024)}`,
  });
  expectError(
    refused,
    400,
    'bad_request',
    'callbackUrl: must have at most 2048 characters; receiptId: must have at most 255 characters; ' +
      'metadata.plan: must be a string of at most 500 characters',
  );
});

test.for(['utf8', '"utf-8"', 'UTF8', '"UTF8"'])(
  'a JSON body with the content type parameter charset=%s is accepted [D-10, IF-1]',
  async (charset, { api }) => {
    const answer = await api.call('POST', '/customer/create', {
      body: { customerDetails: { name: 'Ada' } },
      headers: { 'content-type': `application/json; charset=${charset}` },
    });
    expect(answer.status).toBe(200);
  },
);

test('a country code is accepted in any case and returned as given [D-10]', async ({ api }) => {
  const customerDetails = { customerAddress: { country: 'gB' } };
  const made = await api.call('POST', '/customer/create', { body: { customerDetails } });
  const { customerId } = made.json as { customerId: string };
  const { json } = await api.call('GET', `/customer/${customerId}`);
  expect(json).toEqual({ customerId, customerDetails });
});

test('the header Ignored-Fields of an answer names the ignored fields of the body [D-10]', async ({
  api,
}) => {
  const named = await create(api, {
    colour: 'red',
    customerDetails: { name: 'Ada', title: 'Dr', customerAddress: { planet: 'Earth' } },
    metadata: { anything: 'goes' },
    'größe\r\n': 1,
  });
  expect(named.status).toBe(200);
  expect(named.headers['ignored-fields']).toBe(
    'customerDetails.title, customerDetails.customerAddress.planet, colour, gr%C3%B6%C3%9Fe%0D%0A',
  );
  expect((await create(api, {})).headers).not.toHaveProperty('ignored-fields');
  const refused = await create(api, { callbackUrL: 'https://shop.example/', interval: 'HOURLY' });
  expect(refused.status).toBe(400);
  expect(refused.headers['ignored-fields']).toBe('callbackUrL');
  const odd = await create(api, { '\ud800': 1, [`${'x'.repeat(63)}😀`]: 2 });
  expect(odd.headers['ignored-fields']).toBe(`%EF%BF%BD, ${'x'.repeat(63)}%EF%BF%BD`);
});

const STRICT = { 'unknown-fields': 'refuse' };

test('with the header Unknown-Fields an unknown field is refused by its path, besides the other problems, and nothing is created [D-10]', async ({
  api,
}) => {
  const before = await api.countRows();
  const send = (changes: object, headers: Record<string, string> = STRICT) =>
    api.call('POST', '/subscription/create', { body: { ...ORDER, ...changes }, headers });
  const unknown = (...fields: string[]) =>
    fields.map((field) => `${field}: is not a field of this request`).join('; ');
  expectError(await send({ trialPeriodDays: 14 }), 400, 'bad_request', unknown('trialPeriodDays'));
  expectError(
    await send({ cycleCount: 0, customerDetails: { title: 'Dr' }, productPage: { nmae: 'Tea' } }),
    400,
    'bad_request',
    `${unknown('customerDetails.title')}; cycleCount: must be an integer of at least 1; ${unknown('productPage.nmae')}`,
  );
  expectError(
    await send({}, { 'unknown-fields': 'ignore' }),
    400,
    'bad_request',
    'Unknown-Fields: must be refuse, or absent',
  );
  expect(await api.countRows()).toEqual(before);
  expect((await send({ metadata: { any: 'pair' } })).status).toBe(200);
});

test.for(
  ROUTES.filter(({ body, method }) => body !== undefined && method !== 'get').map(
    ({ method, path }) => [method.toUpperCase(), path] as const,
  ),
)(
  'a member that is given twice is refused by %s %s, and changes nothing [D-10]',
  async ([method, template], { api }) => {
    const before = await api.countRows();
    const answer = await api.call(method, template.replaceAll(/:\w+/g, 'whatever'), {
      raw: '{"customerDetails":{},"list":[{},{"amount":1999,"b":{},"amount":9900}]}',
    });
    expectError(answer, 400, 'bad_request', 'list[1].amount: is given twice');
    expect(await api.countRows()).toEqual(before);
  },
);

test.for(ROUTES.map(({ method, path }) => [method.toUpperCase(), path] as const))(
  'an unknown query parameter is refused by %s %s [D-10]',
  async ([method, template], { api }) => {
    const path = template.replaceAll(/:\w+/g, 'whatever');
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: {} };
    const answer = await api.call(method, `${path}?stauts=ACTIVE`, body);
    expectError(answer, 400, 'bad_request', 'stauts: is not a parameter of this request');
  },
);

test.for(['__proto__', '__proto__=1', 'constructor', 'toString', 'hasOwnProperty=', 'valueOf'])(
  'the query %s is refused like any unknown parameter [D-10]',
  async (query, { api }) => {
    const answer = await api.call('GET', `/subscription?${query}`);
    const name = query.replace(/=.*/, '');
    expectError(answer, 400, 'bad_request', `${name}: is not a parameter of this request`);
  },
);

test.for([
  ['GET', '/customer'],
  ['GET', '/nothing/here'],
  ['DELETE', '/subscription/create'],
] as const)(
  'wrong credentials are answered 401 at %s %s [D-20a]',
  async ([method, path], { api }) => {
    const wrong = { keyId: api.merchant.keyId, secret: 'sk_test_wrong' };
    const answer = await api.call(method, path, { as: wrong });
    expectError(answer, 401, 'unauthorized', 'The credentials are missing or not valid.');
  },
);

test('the header Ignored-Fields has at most 1,000 characters and only whole names [D-10]', async ({
  api,
}) => {
  const names = Array.from({ length: 20 }, (_, index) => `${'茶'.repeat(30)}${index}`);
  const body = { customerDetails: {}, ...Object.fromEntries(names.map((name) => [name, 1])) };
  const { headers } = await api.call('POST', '/customer/create', { body });
  expect(headers['ignored-fields']).toBe(names.slice(0, 3).map(encodeURIComponent).join(', '));
});
