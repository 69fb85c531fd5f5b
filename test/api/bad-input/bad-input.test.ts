import { EVENT_TYPES } from '../../../domain/events.ts';
import { expect } from 'vitest';
import { expectError } from '../../support/answers.ts';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import type { CallOptions } from '../../support/api-environment.ts';
import {
  intentBody,
  setupBody,
  tokenisedBody,
  UNKNOWN_IDS,
} from '../../support/fixtures/payments.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';
import { paymentLinkBody, PAYMENT_LINK } from '../../support/hosted-pages/links.ts';

/** Requests that are refused, each with its exact answer. A refused request adds no row to any table. */

/** An `errorDescription`, and the changes of a valid body that cause it. */
type Row = [description: string, ...changes: Record<string, unknown>[]];

interface Table {
  rules: string;
  path: string;
  /** The body of a valid request with these changes. */
  body: (changes: Record<string, unknown>) => object;
  rows: Row[];
}

const only = (changes: object): object => changes;
const ofSubscription = (changes: object): object => ({
  subscriptionId: UNKNOWN_IDS.subscription,
  ...changes,
});
const NEXT_YEAR = Date.now() + 365 * 86_400_000;
const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const DEEP = '['.repeat(30_000) + ']'.repeat(30_000);
/** More than the sum of 1,200 cycles that is a safe integer. */
const HUGE = { amount: 9_000_000_000_000, currency: 'IRR', interval: 'DAY', cycleCount: 1_200 };

const INTEGER = 'must be an integer in the smallest currency unit';
const AT_LEAST_1 = 'must be an integer of at least 1';
const SUM = 'must make a sum of all cycles of at most 9007199254740991';
const URL_TEXT = 'must be an absolute http or https URL';
const NAMES = 'must be upper-case letters and underscores';
const CURRENCY = 'currency: must be a supported ISO 4217 currency code';
const COUNTRY = 'customerAddress.country: must be an ISO 3166 alpha-2 country code';
const INSTANT = 'must be epoch milliseconds before the year 2200';
const NUL_TEXT = 'must be text without NUL characters and unpaired surrogates';
const PAIR = 'must be a string of at most 500 characters';
const LOCALE = 'locale: must be one of en, de, fr, es, pt, it, nl, ja, ar';
const NO_METADATA = 'metadata: is not accepted on a link';
const WITH = 'is required to edit the interval';
const UNIT = 'must be one of DAY, WEEK, MONTH, YEAR';
const EVENTS = `must be one of ${EVENT_TYPES.join(', ')}`;

const TABLES: Table[] = [
  {
    rules: 'D-10, D-11, IF-2.9, IF-4.1, IF-7',
    path: '/customer/create',
    body: (customerDetails) => ({ customerDetails }),
    rows: [
      ['customerDetails.name: must be a string', { name: 7 }],
      ['customerDetails.name: must have at most 255 characters', { name: 'x'.repeat(256) }],
      [`customerDetails.name: ${NUL_TEXT}`, { name: 'A\0da' }, { name: 'A\ud800' }],
      [
        'customerDetails.email: must be an e-mail address',
        { email: 'ada@' },
        { email: 'ada lovelace@example.com' },
      ],
      ['customerDetails.customerAddress: must be an object', { customerAddress: 'London' }],
      [
        `customerDetails.${COUNTRY}`,
        { customerAddress: { country: 'GBR' } },
        { customerAddress: { country: 'XX' } },
      ],
      [
        'customerDetails.name: must be a string; customerDetails.email: must be an e-mail address; ' +
          'customerDetails.customerAddress.city: must be a string',
        { name: 7, email: 'x', customerAddress: { city: [] } },
      ],
    ],
  },
  {
    rules: 'D-11',
    path: '/customer/create',
    body: only,
    rows: [
      ['customerDetails: is required', {}, { customerDetails: null }],
      ['customerDetails: must be an object', { customerDetails: 'Ada' }, { customerDetails: [] }],
    ],
  },
  {
    rules: 'D-01, D-02, D-03, D-06, D-10, D-10a, D-12, D-13, D-§7, IF-2.8, IF-4, IF-4.3, IF-8',
    path: '/subscription/create',
    body: subscriptionBody,
    rows: [
      [`amount: ${INTEGER}`, { amount: '1999' }, { amount: 19.99 }, { amount: 2 ** 53 }],
      ['amount: must be at least 101 in USD', { amount: -1_999 }, { amount: 100 }],
      ['amount: is required', { amount: null }],
      ['amount: must be at most 99999999 in USD', { amount: 100_000_000 }],
      [`amount: ${SUM}; cycleCount: ${SUM}`, HUGE],
      ['currency: must be a string', { currency: 840 }],
      ['currency: must be a three-letter ISO 4217 currency code', { currency: 'US' }],
      [CURRENCY, { currency: 'XXZ' }, { currency: 'HRK' }],
      ['upfrontAmount: must be at least 101 in USD', { upfrontAmount: 1 }],
      [
        'upfrontAmount: cannot be given with trialPeriodCount',
        { upfrontAmount: 500, trialPeriodCount: 7, trialPeriodInterval: 'DAY' },
        { upfrontAmount: 500, trialPeriodCount: 0, trialPeriodInterval: 'DAY' },
      ],
      [
        'trialPeriodInterval: is required with trialPeriodCount',
        { trialPeriodCount: 7 },
        { trialPeriodCount: 0 },
      ],
      [`trialPeriodInterval: ${UNIT}`, { trialPeriodCount: 7, trialPeriodInterval: 'HOUR' }],
      [
        'trialPeriodCount: must be an integer of at least 0',
        { trialPeriodCount: -1, trialPeriodInterval: 'DAY' },
      ],
      [
        'trialPeriodCount: must make a trial of at most 10 years',
        { trialPeriodCount: 11, trialPeriodInterval: 'YEAR' },
      ],
      [`interval: ${UNIT}`, { interval: 'month' }],
      [`intervalCount: ${AT_LEAST_1}`, { intervalCount: 0 }, { intervalCount: 1.5 }],
      [
        'intervalCount: must be an integer from 1 to 120 for interval MONTH',
        { intervalCount: 121 },
      ],
      [`cycleCount: ${AT_LEAST_1}`, { cycleCount: 0 }],
      ['cycleCount: must be an integer from 1 to 1200', { cycleCount: 1_201 }],
      [
        'cycleCount: the last billing date must be before the year 2200',
        { interval: 'YEAR', intervalCount: 10, cycleCount: 100 },
      ],
      ['callbackUrl: is required', { callbackUrl: undefined }],
      [
        `callbackUrl: ${URL_TEXT}`,
        { callbackUrl: '/back' },
        { callbackUrl: 'javascript:alert(1)' },
        { callbackUrl: 'https://merchant.example/\nx' },
        { callbackUrl: 'https:///path' },
      ],
      [
        'callbackUrl: must have at most 2048 characters',
        { callbackUrl: `https://merchant.example/${'x'.repeat(2_024)}` },
      ],
      [`cancelUrl: ${URL_TEXT}`, { cancelUrl: 'ftp://x' }],
      ['metadata: must be an object', { metadata: ['a'] }],
      [
        'metadata: must have at most 50 pairs',
        { metadata: Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`k${at}`, 'v'])) },
      ],
      [
        'metadata: must have keys of at most 40 characters',
        { metadata: { ['k'.repeat(41)]: 'v' } },
      ],
      [`metadata.order: ${PAIR}`, { metadata: { order: 'v'.repeat(501) } }],
      [`metadata.a: ${PAIR}; metadata.c: ${PAIR}`, { metadata: { a: 1, b: 'right', c: null } }],
      ['phoneNumberRequired: must be true or false', { phoneNumberRequired: 'true' }],
      [LOCALE, { locale: 'sv' }, { locale: 'de-DE' }, { locale: 'EN' }, { locale: 7 }],
      ['productPage: must be an object', { productPage: 'Tea' }],
      ['productPage.name: must be a string', { productPage: { name: 7 } }],
      ['receiptId: must be a string', { receiptId: 7 }],
      [
        'amount: must be greater than 0; currency: must be a three-letter ISO 4217 currency code; ' +
          `customerDetails.email: must be an e-mail address; intervalCount: ${AT_LEAST_1}; ` +
          'trialPeriodInterval: is required with trialPeriodCount; metadata: must be an object',
        {
          trialPeriodCount: 1,
          metadata: 'x',
          intervalCount: 0,
          currency: 'usdollar',
          amount: 0,
          customerDetails: { email: 'x' },
        },
      ],
    ],
  },
  {
    rules: 'IF-4.3',
    path: '/subscription/create',
    body: only,
    rows: [
      [
        'amount: is required; currency: is required; customerDetails: is required; ' +
          'callbackUrl: is required; interval: is required; intervalCount: is required; ' +
          'cycleCount: is required',
        {},
      ],
    ],
  },
  {
    rules: 'D-01, D-04, D-06, D-10, D-10a, D-15, IF-4.6',
    path: '/subscription/edit',
    body: ofSubscription,
    rows: [
      [
        'body: must have newAmount, newCycleCount, newNextPaymentDate or interval',
        {},
        { newAmount: null, interval: null },
      ],
      [`newNextPaymentDate: ${WITH}; intervalCount: ${WITH}`, { interval: 'WEEK' }],
      [`newNextPaymentDate: ${WITH}; interval: ${WITH}`, { intervalCount: 2 }],
      [`newNextPaymentDate: ${WITH}`, { interval: 'WEEK', intervalCount: 2, newAmount: 500 }],
      [`intervalCount: ${WITH}`, { interval: 'WEEK', newNextPaymentDate: NEXT_YEAR }],
      [`interval: ${WITH}`, { intervalCount: 2, newNextPaymentDate: NEXT_YEAR }],
      [`interval: ${UNIT}`, { interval: 'HOUR', intervalCount: 1, newNextPaymentDate: NEXT_YEAR }],
      [
        'intervalCount: must be an integer from 1 to 120 for interval MONTH',
        { interval: 'MONTH', intervalCount: 121, newNextPaymentDate: NEXT_YEAR },
      ],
      [`newAmount: ${INTEGER}`, { newAmount: '1999' }, { newAmount: 0.5 }],
      ['newAmount: must be greater than 0', { newAmount: 0 }],
      ['newCycleCount: must be an integer from 1 to 1200', { newCycleCount: 1_201 }],
      [`newCycleCount: ${AT_LEAST_1}`, { newCycleCount: 0 }],
      [
        `newNextPaymentDate: ${INSTANT}`,
        { newNextPaymentDate: '2027-12-24' },
        { newNextPaymentDate: Date.UTC(2200, 0, 1) },
      ],
      [
        `newAmount: must be greater than 0; newCycleCount: ${AT_LEAST_1}; ` +
          `newNextPaymentDate: ${INSTANT}; intervalCount: ${AT_LEAST_1}`,
        { newAmount: -1, newCycleCount: 1.5, newNextPaymentDate: true, intervalCount: 'x' },
      ],
    ],
  },
  {
    rules: 'D-10, IF-4.7',
    path: '/subscription/merchant/cancel',
    body: ofSubscription,
    rows: [
      ['subscriptionId: must be a string', { subscriptionId: [UNKNOWN_IDS.subscription] }],
      ['atPeriodEnd: must be true or false', { atPeriodEnd: 'yes' }],
    ],
  },
  {
    rules: 'D-10',
    path: '/subscription/merchant/pause',
    body: ofSubscription,
    rows: [[`resumeAt: ${INSTANT}`, { resumeAt: '2027-12-24' }]],
  },
  {
    rules: 'D-04, D-06, D-10a, D-§4',
    path: '/subscription/merchant/unpause',
    body: ofSubscription,
    rows: [
      ['newNextPaymentDate: is required', {}, { newNextPaymentDate: null }],
      [
        `newNextPaymentDate: ${INSTANT}`,
        ...['1830000000000', 1.5, -1, Date.UTC(2200, 0, 1)].map((newNextPaymentDate) => ({
          newNextPaymentDate,
        })),
      ],
    ],
  },
  {
    rules: 'D-01, D-03, D-06, D-10, D-10a, D-14, D-37, IF-4.4, IF-8',
    path: '/subscription/link/merchant/generate-link',
    body: (changes) =>
      subscriptionBody({ callbackUrl: undefined, expiryDate: NEXT_YEAR, ...changes }),
    rows: [
      [`amount: ${SUM}; cycleCount: ${SUM}`, HUGE],
      [NO_METADATA, { metadata: { order: '7' } }, { metadata: [] }],
      ['amount: must be at least 101 in USD', { amount: 100 }],
      ['expiryDate: is required', { expiryDate: undefined }, { expiryDate: null }],
      [`expiryDate: ${INSTANT}`, { expiryDate: '2027-01-01' }, { expiryDate: NEXT_YEAR + 0.5 }],
      ['expiryDate: must lie in the future', { expiryDate: 1 }],
      [
        'expiryDate: must leave every billing date of the subscription before the year 2200',
        { expiryDate: Date.UTC(2199, 11, 1) },
      ],
      [
        `multiUseLimit: ${AT_LEAST_1}`,
        { multiUseLimit: 0 },
        { multiUseLimit: 1.5 },
        { multiUseLimit: '5' },
      ],
      [
        `amount: ${INTEGER}; callbackUrl: must be a string; ${NO_METADATA}; ` +
          `expiryDate: ${INSTANT}; multiUseLimit: ${AT_LEAST_1}`,
        { multiUseLimit: 0, expiryDate: 'x', metadata: 'y', amount: '1', callbackUrl: 7 },
      ],
    ],
  },
  {
    rules: 'IF-4.4, D-10',
    path: '/subscription/link/merchant/generate-link',
    body: only,
    rows: [
      [
        'amount: is required; currency: is required; customerDetails: is required; ' +
          'interval: is required; intervalCount: is required; cycleCount: is required; ' +
          'expiryDate: is required',
        {},
      ],
    ],
  },
  {
    rules: 'D-§7, D-10',
    path: PAYMENT_LINK,
    body: (changes) => paymentLinkBody({ expiryDate: NEXT_YEAR, ...changes }),
    rows: [
      [
        'amount: is required; currency: is required; expiryDate: is required',
        { amount: undefined, currency: undefined, expiryDate: undefined },
      ],
      ['amount: must be at least 50 in USD', { amount: 49 }],
    ],
  },
  {
    rules: 'D-01, D-02, D-03, D-21, D-35, IF-4.10',
    path: '/subscription/merchant/one-time-charge',
    body: (changes) => ({
      subscriptionId: UNKNOWN_IDS.subscription,
      amount: 500,
      currency: 'USD',
      ...changes,
    }),
    rows: [
      [
        'subscriptionId: is required; amount: is required; currency: is required',
        { subscriptionId: undefined, amount: undefined, currency: undefined },
      ],
      ['amount: must be at least 50 in USD', { amount: 49 }],
      ['amount: must be at most 99999999 in USD', { amount: 100_000_000 }],
      [`amount: ${INTEGER}`, { amount: '500' }],
      [CURRENCY, { currency: 'XXZ' }],
      ['comments: must have at most 5000 characters', { comments: 'x'.repeat(5_001) }],
      ['comments: must be a string', { comments: [] }],
      ['subscriptionId: must have at most 64 characters', { subscriptionId: 'x'.repeat(65) }],
    ],
  },
  {
    rules: 'D-03, D-10, D-10a, D-14, IF-4.12',
    path: '/payments/charge-tokenised-pm',
    body: (changes) =>
      tokenisedBody({ customerId: UNKNOWN_IDS.customer, pmId: UNKNOWN_IDS.method }, changes),
    rows: [
      [
        'pmId: is required; customerId: is required; currency: is required; amount: is required',
        { pmId: undefined, customerId: undefined, currency: undefined, amount: undefined },
      ],
      ['amount: must be at least 50 in USD', { amount: 0 }],
      ['amount: is required', { amount: null }],
      [`metadata.order: ${PAIR}`, { metadata: { order: 7 } }],
      ['storeFrontId: must have at most 255 characters', { storeFrontId: 'x'.repeat(256) }],
      ['receiptId: must be a string', { receiptId: 7 }],
    ],
  },
  {
    rules: 'D-13, D-43, D-§7',
    path: '/payments/create-intent',
    body: intentBody,
    rows: [
      [
        'amount: is required; currency: is required; callbackUrl: is required',
        { amount: undefined, currency: undefined, callbackUrl: undefined },
      ],
      [`callbackUrl: ${URL_TEXT}`, { callbackUrl: '/back' }],
      [`cancelUrl: ${URL_TEXT}`, { cancelUrl: 'mailto:a@b.c' }],
      [`paymentMethods[1]: ${NAMES}`, { paymentMethods: ['CARD', 'cash'] }],
      ['paymentMethods: must be an array', { paymentMethods: 'CARD' }],
      ['tokenise: must be true or false', { tokenise: 'true' }],
      ['productPage.name: must be a string', { productPage: { name: 7 } }],
      [LOCALE, { locale: 'sv' }],
    ],
  },
  {
    rules: 'D-§7, D-01, D-10',
    path: '/payments/merchant/refund',
    body: (changes) => ({ xIntentId: UNKNOWN_IDS.intent, ...changes }),
    rows: [
      ['xIntentId: is required', { xIntentId: undefined }],
      [
        'amount: must be an integer of at least 1 in the smallest currency unit',
        ...[0, -1, 1.5, '0', '01', '1.5', '-5', ' 5', '9'.repeat(16), true, [], ''].map(
          (amount) => ({ amount }),
        ),
      ],
    ],
  },
  {
    rules: 'D-02, D-11, D-13, D-43, IF-4.13',
    path: '/setup-method/create',
    body: setupBody,
    rows: [
      [
        'currency: is required; billingDetails: is required; callbackUrl: is required',
        { currency: undefined, billingDetails: undefined, callbackUrl: undefined },
      ],
      [CURRENCY, { currency: 'XXZ' }],
      [
        `billingDetails.email: must be an e-mail address; billingDetails.${COUNTRY}`,
        { billingDetails: { email: 'ada@', customerAddress: { country: 'GBR' } } },
      ],
      [`callbackUrl: ${URL_TEXT}`, { callbackUrl: 'https://' }],
      [`paymentMethods[0]: ${NAMES}`, { paymentMethods: [''] }],
      [
        'paymentMethods: must have at most 20 entries',
        { paymentMethods: Array.from({ length: 21 }, () => 'CARD') },
      ],
      ['phoneNumberRequired: must be true or false', { phoneNumberRequired: 1 }],
      [LOCALE, { locale: 'sv' }],
    ],
  },
  {
    rules: 'D-50, D-53, D-55, IF-4.15',
    path: '/webhook',
    body: (changes) => ({
      eventSigner: 'a-signing-secret',
      endpoint: 'https://merchant.example/hook',
      subscribedEventTypes: ['intent.success'],
      ...changes,
    }),
    rows: [
      [
        'eventSigner: is required; endpoint: is required; subscribedEventTypes: is required',
        { eventSigner: undefined, endpoint: undefined, subscribedEventTypes: undefined },
      ],
      ['eventSigner: must not be empty', { eventSigner: '' }],
      ['eventSigner: must have at most 255 characters', { eventSigner: 'ä'.repeat(256) }],
      ['eventSigner: must be Base64 after whsec_', { eventSigner: 'whsec_%%%' }],
      ['endpoint: must be an absolute https URL', { endpoint: 'http://merchant.example/hook' }],
      [
        `endpoint: ${NUL_TEXT}`,
        { endpoint: 'https://merchant.example/\0' },
        { endpoint: 'https://merchant.example/\ud800' },
      ],
      [
        'endpoint: must not contain credentials',
        { endpoint: 'https://user:pass@merchant.example/hook' },
      ],
      [
        'endpoint: must have a public address',
        { endpoint: 'https://127.0.0.1/hook' },
        { endpoint: 'https://2130706433/hook' },
      ],
      ['subscribedEventTypes: must be an array', { subscribedEventTypes: 'intent.success' }],
      [
        `subscribedEventTypes[1]: ${EVENTS}`,
        { subscribedEventTypes: ['intent.success', 'intent.paid'] },
      ],
      [
        'subscribedEventTypes: must have at most 50 entries',
        { subscribedEventTypes: Array.from({ length: 51 }, () => 'intent.success') },
      ],
    ],
  },
  {
    rules: 'D-60',
    path: '/test-clock/create',
    body: only,
    rows: [[`now: ${INSTANT}`, { now: '2026-01-31' }, { now: -1 }]],
  },
  {
    rules: 'D-60',
    path: '/test-clock/advance',
    body: only,
    rows: [
      ['testClockId: is required; to: is required', {}],
      [`to: ${INSTANT}`, { testClockId: 'clk_0000000000000000000000', to: Date.UTC(2200, 0, 1) }],
    ],
  },
];

for (const { path, rules, body, rows } of TABLES) {
  test.for(rows)(
    `POST ${path} adds no row, calls no workflow and answers: %s [${rules}]`,
    async ([description, ...cases], { api }) => {
      const before = await api.countRows();
      const called = api.workflows.calls.length;
      for (const changes of cases) {
        const answer = await api.call('POST', path, { body: body(changes), key: 'never-kept' });
        expectError(answer, 400, 'bad_request', description);
        expect(answer.headers['request-id']).toMatch(/^req_[0-9A-Za-z]{22}$/);
      }
      expect(await api.countRows()).toEqual(before);
      expect(api.workflows.calls).toHaveLength(called);
    },
  );
}

const OTHER_TYPE = 'body: must be sent with Content-Type: application/json';
const NOT_OBJECT = 'body: must be a JSON object';
const CANCEL = `/payments/cancel/${UNKNOWN_IDS.intent}`;
const KEYS = 'Idempotency-Key: must be 1 to 255 characters of a-z, A-Z, 0-9, -, _, : and .';
const NO_CUSTOMER = 'There is no such customer.';
const customer = (key: string) => ({ body: { customerDetails: {} }, key });

/** Requests that are refused as a whole, and not because of one field of a JSON body. */
test.for<[string, string, CallOptions, string]>([
  ['no body [D-10]', '/customer/create', {}, OTHER_TYPE],
  ['a form [D-10, IF-1]', '/customer/create', { raw: 'amount=1', headers: FORM }, OTHER_TYPE],
  [
    'a form to a route with an optional body [D-10]',
    CANCEL,
    { raw: 'a=1', headers: FORM },
    OTHER_TYPE,
  ],
  [
    'another type [D-10, IF-1]',
    '/customer/create',
    { raw: '{}', headers: { 'content-type': 'text/plain' } },
    OTHER_TYPE,
  ],
  [
    'another charset [D-10]',
    '/customer/create',
    { raw: '{}', headers: { 'content-type': 'application/json; charset=latin1' } },
    OTHER_TYPE,
  ],
  [
    'a compressed body [D-10]',
    '/customer/create',
    { raw: '{}', headers: { 'content-encoding': 'gzip' } },
    'body: must be sent without Content-Encoding',
  ],
  ['an empty body [D-10]', '/customer/create', { raw: '' }, 'body: must be valid JSON'],
  [
    'broken JSON [D-10, IF-7]',
    '/customer/create',
    { raw: '{"amount": 1' },
    'body: must be valid JSON',
  ],
  [
    'bytes that are not UTF-8 [D-10]',
    '/customer/create',
    { raw: Buffer.from([0x22, 0xff, 0x22]) },
    'body: must be UTF-8',
  ],
  [
    'a body over 512 kB [D-10]',
    '/customer/create',
    { body: { name: 'x'.repeat(524_288) } },
    'body: must be at most 512 kB',
  ],
  ['an array [D-10]', '/customer/create', { raw: '[]' }, NOT_OBJECT],
  ['null [D-10]', '/customer/create', { raw: 'null' }, NOT_OBJECT],
  ['a number [D-10]', '/customer/create', { raw: '7' }, NOT_OBJECT],
  ['arrays nested 30,000 deep [D-10]', '/customer/create', { raw: DEEP }, NOT_OBJECT],
  [
    'an ignored field nested 30,000 deep, with a key [D-17]',
    '/customer/create',
    { raw: `{"customerDetails":{},"x":${DEEP}}`, key: 'deep' },
    'body: must not be nested so deeply',
  ],
  ['an empty Idempotency-Key [IF-8]', '/customer/create', customer(''), KEYS],
  ['an Idempotency-Key with quotes [IF-8]', '/customer/create', customer('"quoted"'), KEYS],
])('a request with %s is refused and adds no row', async ([, path, send, description], { api }) => {
  const before = await api.countRows();
  expectError(await api.call('POST', path, send), 400, 'bad_request', description);
  expect(await api.countRows()).toEqual(before);
});

test.for<[string, string, CallOptions, string, string]>([
  ['GET', '/customer/cus_%00', {}, 'resource_not_found', NO_CUSTOMER],
  ['GET', '/customer/%00_AAAAAAAAAAAAAAAAAAAAAA', {}, 'resource_not_found', NO_CUSTOMER],
  ['GET', '/customer/%E0%A4%A', {}, 'resource_not_found', NO_CUSTOMER],
  [
    'GET',
    '/webhook?includeInactive=yes',
    {},
    'bad_request',
    'includeInactive: must be one of true, false',
  ],
  [
    'PUT',
    '/webhook/whc_0000000000000000000000',
    { body: { eventSigner: 's', endpoint: 'https://m.example/\0', subscribedEventTypes: [] } },
    'bad_request',
    `endpoint: ${NUL_TEXT}`,
  ],
])('%s %s is refused [D-21, D-55]', async ([method, path, send, code, description], { api }) => {
  expectError(await api.call(method, path, send), 400, code, description);
});

test('a subscription is refused when its last billing date on a test clock is after 2199 [D-06, D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, Date.UTC(2199, 10, 30));
  const before = await api.countRows();
  const body = subscriptionBody({ testClockId });
  const description = 'cycleCount: the last billing date must be before the year 2200';
  expectError(
    await api.call('POST', '/subscription/create', { body }),
    400,
    'bad_request',
    description,
  );
  expect(await api.countRows()).toEqual(before);
});
