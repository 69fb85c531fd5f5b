import { json, raw, UNKNOWN_CLK, UNKNOWN_WHC } from '../../support/bad-input-case.ts';
import type { Case } from '../../support/bad-input-case.ts';

const CREATE = '/subscription/create';
const customer = (name: string, customerDetails: unknown, description: string): Case => ({
  name,
  path: '/customer/create',
  send: json({ customerDetails }),
  description,
});
const webhook = (name: string, changes: Record<string, unknown>, description: string): Case => ({
  name,
  path: '/webhook',
  send: json({
    eventSigner: 'a-signing-secret',
    endpoint: 'https://merchant.example/hook',
    subscribedEventTypes: ['intent.success'],
    ...changes,
  }),
  description,
});

const NUL_TEXT = 'must be text without NUL characters and unpaired surrogates';
const EVENTS =
  'must be one of intent.checkout_opened, intent.created, intent.failed, intent.refunded, ' +
  'intent.success, intent.refund_failed, intent.disputed, subscription.trialing, ' +
  'subscription.cycle_charged, subscription.created, subscription.checkout_opened, ' +
  'subscription.active, subscription.unpaid, subscription.retries_exhausted, subscription.paused, ' +
  'subscription.ended, setup_method.success, setup_method.updated';

/** Requests whose body is refused as a whole, and not because of one field. */
export const BODIES: Case[] = [
  {
    name: 'no body and no content type [D-10]',
    path: CREATE,
    send: {},
    description: 'body: must be sent with Content-Type: application/json',
  },
  {
    name: 'a form instead of JSON [D-10, IF-1]',
    path: CREATE,
    send: raw('amount=1', { 'content-type': 'application/x-www-form-urlencoded' }),
    description: 'body: must be sent with Content-Type: application/json',
  },
  {
    name: 'JSON with another content type [D-10, IF-1]',
    path: CREATE,
    send: raw('{}', { 'content-type': 'text/plain' }),
    description: 'body: must be sent with Content-Type: application/json',
  },
  {
    name: 'JSON in a charset other than UTF-8 [D-10]',
    path: CREATE,
    send: raw('{}', { 'content-type': 'application/json; charset=latin1' }),
    description: 'body: must be sent with Content-Type: application/json',
  },
  {
    name: 'a compressed body [D-10]',
    path: CREATE,
    send: raw('{}', { 'content-encoding': 'gzip' }),
    description: 'body: must be sent without Content-Encoding',
  },
  {
    name: 'an empty body [D-10]',
    path: CREATE,
    send: raw(''),
    description: 'body: must be valid JSON',
  },
  {
    name: 'broken JSON [D-10, IF-7]',
    path: CREATE,
    send: raw('{"amount": 1'),
    description: 'body: must be valid JSON',
  },
  {
    name: 'bytes that are not UTF-8 [D-10]',
    path: CREATE,
    send: raw(Buffer.from([0x22, 0xff, 0x22])),
    description: 'body: must be UTF-8',
  },
  {
    name: 'a body over 512 kB [D-10]',
    path: CREATE,
    send: raw(JSON.stringify({ description: 'x'.repeat(524_288) })),
    description: 'body: must be at most 512 kB',
  },
  {
    name: 'an array [D-10]',
    path: CREATE,
    send: raw('[]'),
    description: 'body: must be a JSON object',
  },
  {
    name: 'null [D-10]',
    path: CREATE,
    send: raw('null'),
    description: 'body: must be a JSON object',
  },
  {
    name: 'a number [D-10]',
    path: '/customer/create',
    send: raw('7'),
    description: 'body: must be a JSON object',
  },
  {
    name: 'arrays nested 30,000 deep [D-10]',
    path: CREATE,
    send: raw('['.repeat(30_000) + ']'.repeat(30_000)),
    description: 'body: must be a JSON object',
  },
  {
    name: 'an ignored field nested 30,000 deep, with an idempotency key [D-17]',
    path: '/customer/create',
    send: {
      ...raw(`{"customerDetails":{},"x":${'['.repeat(30_000) + ']'.repeat(30_000)}}`),
      key: 'deep',
    },
    description: 'body: must not be nested so deeply',
  },
];

export const CUSTOMERS: Case[] = [
  {
    name: 'no customerDetails [D-11, IF-4.1]',
    path: '/customer/create',
    send: json({}),
    description: 'customerDetails: is required',
  },
  customer('customerDetails that is null [D-11]', null, 'customerDetails: is required'),
  customer('customerDetails that is a text [D-11]', 'Ada', 'customerDetails: must be an object'),
  customer('customerDetails that is an array [D-11]', [], 'customerDetails: must be an object'),
  customer('a name that is a number [D-11]', { name: 7 }, 'customerDetails.name: must be a string'),
  customer(
    'a name of 256 characters [D-11]',
    { name: 'x'.repeat(256) },
    'customerDetails.name: must have at most 255 characters',
  ),
  customer(
    'an e-mail address without a domain [D-11]',
    { email: 'ada@' },
    'customerDetails.email: must be an e-mail address',
  ),
  customer(
    'an e-mail address with a blank [D-11]',
    { email: 'ada lovelace@example.com' },
    'customerDetails.email: must be an e-mail address',
  ),
  customer(
    'an address that is a text [D-11]',
    { customerAddress: 'London' },
    'customerDetails.customerAddress: must be an object',
  ),
  customer(
    'a country of three letters [D-11]',
    { customerAddress: { country: 'GBR' } },
    'customerDetails.customerAddress.country: must be an ISO 3166 alpha-2 country code',
  ),
  customer(
    'a country that does not exist [D-11]',
    { customerAddress: { country: 'XX' } },
    'customerDetails.customerAddress.country: must be an ISO 3166 alpha-2 country code',
  ),
  customer(
    'a name with a NUL character [D-11]',
    { name: 'A\0da' },
    `customerDetails.name: ${NUL_TEXT}`,
  ),
  customer(
    'a name with an unpaired surrogate [D-11]',
    { name: 'A\ud800' },
    `customerDetails.name: ${NUL_TEXT}`,
  ),
  customer(
    'three invalid fields, all named in the answer [D-10, IF-2.9, IF-7]',
    { name: 7, email: 'x', customerAddress: { city: [] } },
    'customerDetails.name: must be a string; customerDetails.email: must be an e-mail address; ' +
      'customerDetails.customerAddress.city: must be a string',
  ),
  {
    name: 'a customer id with a NUL character [D-21]',
    method: 'GET',
    path: '/customer/cus_%00',
    send: {},
    code: 'resource_not_found',
    description: 'There is no such customer.',
  },
  {
    name: 'a customer id with invalid percent-encoding [D-21]',
    method: 'GET',
    path: '/customer/%E0%A4%A',
    send: {},
    code: 'resource_not_found',
    description: 'There is no such customer.',
  },
];

export const WEBHOOKS: Case[] = [
  {
    name: 'a webhook configuration without its required fields [IF-4.15]',
    path: '/webhook',
    send: json({}),
    description:
      'eventSigner: is required; endpoint: is required; subscribedEventTypes: is required',
  },
  webhook(
    'an empty webhook secret [D-53]',
    { eventSigner: '' },
    'eventSigner: must be 1 to 255 visible ASCII characters',
  ),
  webhook(
    'a webhook secret with a blank [D-53]',
    { eventSigner: 'a b' },
    'eventSigner: must be 1 to 255 visible ASCII characters',
  ),
  webhook(
    'a webhook secret of whsec_ and text that is not Base64 [D-53]',
    { eventSigner: 'whsec_%%%' },
    'eventSigner: must be Base64 after whsec_',
  ),
  webhook(
    'a webhook endpoint over plain http [D-55]',
    { endpoint: 'http://merchant.example/hook' },
    'endpoint: must be an absolute https URL',
  ),
  webhook(
    'an endpoint with a NUL character [D-55]',
    { endpoint: 'https://merchant.example/\0' },
    `endpoint: ${NUL_TEXT}`,
  ),
  webhook(
    'an endpoint with an unpaired surrogate [D-55]',
    { endpoint: 'https://merchant.example/\ud800' },
    `endpoint: ${NUL_TEXT}`,
  ),
  {
    name: 'a webhook update with a NUL character in the endpoint [D-55]',
    method: 'PUT',
    path: `/webhook/${UNKNOWN_WHC}`,
    send: json({
      eventSigner: 's',
      endpoint: 'https://m.example/\0',
      subscribedEventTypes: [],
    }),
    description: `endpoint: ${NUL_TEXT}`,
  },
  webhook(
    'an endpoint with credentials [D-55]',
    { endpoint: 'https://user:pass@merchant.example/hook' },
    'endpoint: must not contain credentials',
  ),
  webhook(
    'an endpoint on the loopback address [D-55]',
    { endpoint: 'https://127.0.0.1/hook' },
    'endpoint: must have a public address',
  ),
  webhook(
    'an endpoint on the loopback address in decimal form [D-55]',
    { endpoint: 'https://2130706433/hook' },
    'endpoint: must have a public address',
  ),
  webhook(
    'subscribedEventTypes that is a text [IF-4.15]',
    { subscribedEventTypes: 'intent.success' },
    'subscribedEventTypes: must be an array',
  ),
  webhook(
    'an unknown event type [D-50]',
    { subscribedEventTypes: ['intent.success', 'intent.paid'] },
    `subscribedEventTypes[1]: ${EVENTS}`,
  ),
  webhook(
    '51 event types [D-50]',
    { subscribedEventTypes: Array.from({ length: 51 }, () => 'intent.success') },
    'subscribedEventTypes: must have at most 50 entries',
  ),
  {
    name: 'includeInactive that is neither true nor false [D-55]',
    method: 'GET',
    path: '/webhook?includeInactive=yes',
    send: {},
    description: 'includeInactive: must be one of true, false',
  },
];

export const CLOCKS: Case[] = [
  {
    name: 'a new test clock whose time is a date text [D-60]',
    path: '/test-clock/create',
    send: json({ now: '2026-01-31' }),
    description: 'now: must be epoch milliseconds before the year 2200',
  },
  {
    name: 'a new test clock whose time is before 1970 [D-60]',
    path: '/test-clock/create',
    send: json({ now: -1 }),
    description: 'now: must be epoch milliseconds before the year 2200',
  },
  {
    name: 'an advance of a test clock without the clock’s id and the new time [D-60]',
    path: '/test-clock/advance',
    send: json({}),
    description: 'testClockId: is required; to: is required',
  },
  {
    name: 'an advance of a test clock to the year 2200 [D-60]',
    path: '/test-clock/advance',
    send: json({ testClockId: UNKNOWN_CLK, to: Date.UTC(2200, 0, 1) }),
    description: 'to: must be epoch milliseconds before the year 2200',
  },
];

const KEYS = 'Idempotency-Key: must be 1 to 255 characters of a-z, A-Z, 0-9, -, _, : and .';

/** Requests with an invalid Idempotency-Key. */
export const INVALID_KEYS = ['', 'two words', '"quoted"', 'k'.repeat(256)].map((key): Case => ({
  name: `the invalid Idempotency-Key "${key.slice(0, 12)}" [IF-8]`,
  path: '/customer/create',
  send: { body: { customerDetails: {} }, key },
  description: KEYS,
}));
