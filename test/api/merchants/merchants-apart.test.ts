import { expect } from 'vitest';
import { changeGateway } from '../../../db/repositories/merchants/gateways.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { accountBinding } from '../../../gateways/merchant-gateways.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import type { CallOptions } from '../../support/api-environment.ts';
import {
  intentBody,
  makeCustomer,
  makePaid,
  UNKNOWN_IDS,
  saveCard,
  setupBody,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import { comparable } from '../../support/fixtures/subscriptions.ts';
import { expectError } from '../../support/answers.ts';

/**
 * Tests request fields and paths that take an id. A request with the id of another merchant's record gets the same
 * answer as a request with an unknown id, except for the headers Request-Id and Date, and changes nothing. Rule: D-21.
 */

const WEBHOOK = {
  eventSigner: 'secret',
  endpoint: 'https://merchant.example/hook',
  subscribedEventTypes: ['intent.success'],
};

type Kind = 'customer' | 'subscription' | 'webhook' | 'clock' | 'intent' | 'setup' | 'method';
type Call = [method: string, path: string, options: CallOptions];
type Place = [name: string, kind: Kind, call: (id: string, ids: Ids) => Call];

interface Ids {
  theirs: Record<Kind, string>;
  myCustomer: string;
}

const test = apiTest.extend('ids', { scope: 'file' }, async ({ api }): Promise<Ids> => {
  const as = api.other;
  const make = async (path: string, body: unknown) =>
    (await api.call('POST', path, { body, as })).json as Record<string, string>;
  const customer = await make('/customer/create', { customerDetails: { name: 'Eve' } });
  const subscription = await make('/subscription/create', subscriptionBody());
  const webhook = await make('/webhook', WEBHOOK);
  const clock = await make('/test-clock/create', { now: 0 });
  const theirs = {
    customer: customer['customerId']!,
    subscription: subscription['subscriptionId']!,
    webhook: webhook['webhookConfigId']!,
    clock: clock['testClockId']!,
    intent: await makePaid(api, 'other'),
    setup: (await make('/setup-method/create', setupBody()))['setupMethodId']!,
    method: (await saveCard(api, { owner: 'other' })).pmId,
  };
  return { theirs, myCustomer: await makeCustomer(api) };
});

const PLACES: Place[] = [
  ['GET /customer/{customerId}', 'customer', (id) => ['GET', `/customer/${id}`, {}]],
  [
    'customerId of POST /subscription/create',
    'customer',
    (id) => ['POST', '/subscription/create', { body: subscriptionBody({ customerId: id }) }],
  ],
  [
    'testClockId of POST /subscription/create',
    'clock',
    (id) => ['POST', '/subscription/create', { body: subscriptionBody({ testClockId: id }) }],
  ],
  [
    'GET /subscription/get-subscription/{subscriptionId}',
    'subscription',
    (id) => ['GET', `/subscription/get-subscription/${id}`, {}],
  ],
  [
    'subscriptionId of POST /subscription/merchant/cancel',
    'subscription',
    (id) => ['POST', '/subscription/merchant/cancel', { body: { subscriptionId: id } }],
  ],
  [
    'PUT /webhook/{webhookConfigId}',
    'webhook',
    (id) => ['PUT', `/webhook/${id}`, { body: WEBHOOK }],
  ],
  ['DELETE /webhook/{webhookConfigId}', 'webhook', (id) => ['DELETE', `/webhook/${id}`, {}]],
  ['GET /test-clock/{testClockId}', 'clock', (id) => ['GET', `/test-clock/${id}`, {}]],
  [
    'testClockId of POST /test-clock/advance',
    'clock',
    (id) => ['POST', '/test-clock/advance', { body: { testClockId: id, to: 1 } }],
  ],
  [
    'GET /customer/{customerId}/payment-method-tokens',
    'customer',
    (id) => ['GET', `/customer/${id}/payment-method-tokens`, {}],
  ],
  [
    'subscriptionId of POST /subscription/merchant/one-time-charge',
    'subscription',
    (id) => [
      'POST',
      '/subscription/merchant/one-time-charge',
      { body: { subscriptionId: id, amount: 500, currency: 'USD' } },
    ],
  ],
  [
    'customerId of POST /payments/charge-tokenised-pm',
    'customer',
    (customerId, { theirs }) => [
      'POST',
      '/payments/charge-tokenised-pm',
      { body: tokenisedBody({ customerId, pmId: theirs.method }) },
    ],
  ],
  [
    'pmId of POST /payments/charge-tokenised-pm',
    'method',
    (pmId, { myCustomer }) => [
      'POST',
      '/payments/charge-tokenised-pm',
      { body: tokenisedBody({ customerId: myCustomer, pmId }) },
    ],
  ],
  [
    'POST /payments/cancel/{xIntentId}',
    'intent',
    (id) => ['POST', `/payments/cancel/${id}`, { body: { xIntentId: id } }],
  ],
  [
    'customerId of POST /payments/create-intent',
    'customer',
    (customerId) => ['POST', '/payments/create-intent', { body: intentBody({ customerId }) }],
  ],
  [
    'GET /payments/v2/get-intent/{xIntentId}',
    'intent',
    (id) => ['GET', `/payments/v2/get-intent/${id}`, {}],
  ],
  [
    'xIntentId of POST /payments/merchant/refund',
    'intent',
    (xIntentId) => ['POST', '/payments/merchant/refund', { body: { xIntentId } }],
  ],
  [
    'customerId of POST /setup-method/create',
    'customer',
    (customerId) => ['POST', '/setup-method/create', { body: setupBody({ customerId }) }],
  ],
  ['GET /setup-method/{setupMethodId}', 'setup', (id) => ['GET', `/setup-method/${id}`, {}]],
];

const UNKNOWN: Record<Kind, string> = {
  ...UNKNOWN_IDS,
  webhook: 'whc_0000000000000000000000',
  clock: 'clk_0000000000000000000000',
};

test.for(PLACES)(
  '%s refuses another merchant’s id exactly as an unknown one [D-21]',
  async ([, kind, call], { api, ids }) => {
    const rows = await api.countRows();
    const commands = [api.workflows.calls.length, api.payments.calls.length];

    const foreign = await api.call(...call(ids.theirs[kind], ids));
    const unknown = await api.call(...call(UNKNOWN[kind], ids));

    expect(comparable(foreign)).toEqual(comparable(unknown));
    expect(foreign.status).toBe(400);
    expect(foreign.json).toMatchObject({ errorCode: 'resource_not_found' });
    expect(await api.countRows()).toEqual(rows);
    expect([api.workflows.calls.length, api.payments.calls.length]).toEqual(commands);
  },
);

test('the owner’s records are unchanged after requests by another merchant [D-21]', async ({
  api,
  ids: { theirs },
}) => {
  const as = api.other;
  const answers = await Promise.all([
    api.call('GET', `/customer/${theirs.customer}`, { as }),
    api.call('GET', `/subscription/get-subscription/${theirs.subscription}`, { as }),
    api.call('GET', `/test-clock/${theirs.clock}`, { as }),
    api.call('GET', '/webhook', { as }),
    api.call('GET', '/webhook'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(answers[1].json).toMatchObject({ status: 'CREATED' });
  expect(answers[2].json).toMatchObject({ now: 0, status: 'READY' });
  expect((answers[3].json as { data: unknown[] }).data).toHaveLength(1);
  expect(answers[4].json).toEqual({ data: [] });
});

test('live credentials can neither create, advance or read a test clock, nor create a subscription on one [D-20, D-60]', async ({
  api,
  ids: { theirs },
}) => {
  // The merchant command asks Stripe about the account of a live merchant, so the test writes the merchant
  // and the account to the database.
  const live = await createMerchantWithCredential(api.db, {
    name: 'Live Ltd',
    mode: 'live',
    pepper: api.pepper,
  });
  const name = 'stripe:acct_live';
  const { merchantId } = live;
  const sealed = api.sealing.seal('sk_live_apart', accountBinding(merchantId, name));
  const key = { sealed, ending: 'part' };
  const account = { merchantId, name, mode: 'live', key, nowAt: Date.now() } as const;
  await changeGateway(api.db, { ...account, sealedWebhookSecret: null, makeCurrent: true });
  const refused = [
    await api.call('POST', '/test-clock/create', { body: {}, as: live }),
    await api.call('POST', '/test-clock/advance', {
      body: { testClockId: theirs.clock, to: 1 },
      as: live,
    }),
    await api.call('GET', `/test-clock/${theirs.clock}`, { as: live }),
  ];
  for (const answer of refused) {
    expectError(answer, 400, 'operation_not_allowed', 'Test clocks need test credentials.');
  }
  const onClock = await api.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId: theirs.clock }),
    as: live,
  });
  expectError(onClock, 400, 'resource_not_found', 'There is no such test clock.');
});
