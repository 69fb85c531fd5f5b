import { afterAll, beforeAll, expect, test } from 'vitest';
import { createMerchantWithCredential } from '../../db/repositories/merchants/merchants.ts';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { Answer, ApiWorld, CallOptions } from './api-world.ts';
import {
  intentBody,
  makeCustomer,
  makePaid,
  UNKNOWN_IDS,
  saveCard,
  setupBody,
  tokenisedBody,
} from './payment-fixtures.ts';

/**
 * Every place of the API that takes an id. Another merchant's id must get the same bytes as an unknown
 * id, and must change nothing. Rule: D-21.
 */

let world: ApiWorld;
let theirs: Record<Kind, string>;
let myCustomer: string;

beforeAll(async () => {
  world = await createApiWorld();
  const as = world.other;
  const make = async (path: string, body: unknown) =>
    (await world.call('POST', path, { body, as })).json as Record<string, string>;
  const customer = await make('/customer/create', { customerDetails: { name: 'Eve' } });
  const subscription = await make('/subscription/create', subscriptionBody());
  const webhook = await make('/webhook', WEBHOOK);
  const clock = await make('/test-clock/create', { now: 0 });
  theirs = {
    customer: customer['customerId']!,
    subscription: subscription['subscriptionId']!,
    webhook: webhook['webhookConfigId']!,
    clock: clock['testClockId']!,
    intent: await makePaid(world, 'other'),
    setup: (await make('/setup-method/create', setupBody()))['setupMethodId']!,
    method: (await saveCard(world, { owner: 'other' })).pmId,
  };
  myCustomer = await makeCustomer(world);
});
afterAll(() => world.close());

const WEBHOOK = {
  eventSigner: 'secret',
  endpoint: 'https://merchant.example/hook',
  subscribedEventTypes: ['intent.success'],
};

type Kind = 'customer' | 'subscription' | 'webhook' | 'clock' | 'intent' | 'setup' | 'method';
type Place = [name: string, kind: Kind, call: (id: string) => [string, string, CallOptions]];

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
    (customerId) => [
      'POST',
      '/payments/charge-tokenised-pm',
      { body: tokenisedBody({ customerId, pmId: theirs.method }) },
    ],
  ],
  [
    'pmId of POST /payments/charge-tokenised-pm',
    'method',
    (pmId) => [
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

function comparable({ status, text, headers }: Answer) {
  const { 'request-id': _id, date: _date, ...rest } = headers;
  return { status, text, headers: rest };
}

test.each(PLACES)(
  '%s answers a foreign id exactly as an unknown one [D-21]',
  async (_, kind, call) => {
    const rows = await world.countRows();
    const commands = [world.workflows.calls.length, world.payments.calls.length];

    const foreign = await world.call(...call(theirs[kind]));
    const unknown = await world.call(...call(UNKNOWN[kind]));

    expect(comparable(foreign)).toEqual(comparable(unknown));
    expect(foreign.status).toBe(400);
    expect(foreign.json).toMatchObject({ errorCode: 'resource_not_found' });
    expect(await world.countRows()).toEqual(rows);
    expect([world.workflows.calls.length, world.payments.calls.length]).toEqual(commands);
  },
);

test('the owner’s records are unchanged after requests by another merchant [D-21]', async () => {
  const as = world.other;
  const answers = await Promise.all([
    world.call('GET', `/customer/${theirs.customer}`, { as }),
    world.call('GET', `/subscription/get-subscription/${theirs.subscription}`, { as }),
    world.call('GET', `/test-clock/${theirs.clock}`, { as }),
    world.call('GET', '/webhook', { as }),
    world.call('GET', '/webhook'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(answers[1].json).toMatchObject({ status: 'CREATED' });
  expect(answers[2].json).toMatchObject({ now: 0, status: 'READY' });
  expect((answers[3].json as { data: unknown[] }).data).toHaveLength(1);
  expect(answers[4].json).toEqual({ data: [] });
});

test('live credentials cannot use test clocks or see test records [D-20, D-60]', async () => {
  // The merchant command refuses live credentials, so the test creates them in the database.
  const live = await createMerchantWithCredential(world.db, {
    name: 'Live Ltd',
    mode: 'live',
    pepper: world.pepper,
  });
  const refused = [
    await world.call('POST', '/test-clock/create', { body: {}, as: live }),
    await world.call('POST', '/test-clock/advance', {
      body: { testClockId: theirs.clock, to: 1 },
      as: live,
    }),
    await world.call('GET', `/test-clock/${theirs.clock}`, { as: live }),
  ];
  for (const answer of refused) {
    expect(answer.status).toBe(400);
    expect(answer.json).toEqual({
      errorCode: 'operation_not_allowed',
      errorDescription: 'Test clocks need test credentials.',
    });
  }
  const onClock = await world.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId: theirs.clock }),
    as: live,
  });
  expect([onClock.status, onClock.json]).toEqual([
    400,
    { errorCode: 'resource_not_found', errorDescription: 'There is no such test clock.' },
  ]);
});
