import { expect } from 'vitest';
import { changeGateway } from '../../../db/repositories/merchants/gateways.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { accountBinding } from '../../../gateways/merchant-gateways.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import {
  intentBody,
  makeCustomer,
  makePaid,
  notFoundAnswer,
  outcome,
  UNKNOWN_IDS,
  saveCard,
  setupBody,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import { comparable } from '../../support/fixtures/subscriptions.ts';
import { readEvents } from '../../support/fixtures/feed.ts';
import { PAYMENT_LINK, paymentLinkBody } from '../../support/hosted-pages/links.ts';
import { expectError } from '../../support/answers.ts';

/**
 * Tests request fields and paths that take an id. A request with the id of another merchant's record gets the same
 * answer as a request with an unknown id, except for the headers Request-Id and Date, and changes nothing.
 */

const WEBHOOK = {
  eventSigner: 'secret',
  endpoint: 'https://merchant.example/hook',
  subscribedEventTypes: ['intent.success'],
};

const IN_A_YEAR = Date.now() + 365 * 86_400_000;

type Kind =
  | 'customer'
  | 'event'
  | 'subscription'
  | 'webhook'
  | 'clock'
  | 'intent'
  | 'setup'
  | 'method';
/** A path with the id in place of `{id}`, or a path and the body of a request with the id. */
type Place = [place: string, kind: Kind, body?: (id: string, ids: Ids) => object];

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
  const [event] = (await readEvents(api, {}, { as })).data;
  const theirs = {
    event: event!.eventId,
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

const bySubscription = (path: string, more: object = {}): Place => [
  `POST ${path}`,
  'subscription',
  (subscriptionId) => ({ subscriptionId, ...more }),
];

const PLACES: Place[] = [
  ['GET /customer/{id}', 'customer'],
  ['PUT /customer/{id}', 'customer', () => ({ customerDetails: { name: 'Eve' } })],
  ['GET /customer/{id}/state', 'customer'],
  ['GET /customer/{id}/payment-method-tokens', 'customer'],
  ['POST /subscription/create', 'customer', (customerId) => subscriptionBody({ customerId })],
  ['POST /subscription/create', 'clock', (testClockId) => subscriptionBody({ testClockId })],
  ['POST /subscription/link/merchant/generate-link', 'customer', linkBody],
  [`POST ${PAYMENT_LINK}`, 'customer', (customerId) => paymentLinkBody({ customerId })],
  ['GET /subscription/get-subscription/{id}', 'subscription'],
  ['GET /subscription/upcoming/{id}', 'subscription'],
  ['GET /subscription/timeline/{id}', 'subscription'],
  ['GET /subscription/charges/{id}', 'subscription'],
  bySubscription('/subscription/edit', { newAmount: 2_999 }),
  bySubscription('/subscription/manual-retry'),
  bySubscription('/subscription/merchant/cancel'),
  bySubscription('/subscription/merchant/cancel', { atPeriodEnd: true }),
  bySubscription('/subscription/merchant/resume'),
  bySubscription('/subscription/merchant/pause'),
  bySubscription('/subscription/merchant/unpause', { newNextPaymentDate: IN_A_YEAR }),
  bySubscription('/subscription/merchant/one-time-charge', { amount: 500, currency: 'USD' }),
  ['GET /events/{id}', 'event'],
  ['PUT /webhook/{id}', 'webhook', () => WEBHOOK],
  ['DELETE /webhook/{id}', 'webhook'],
  ['GET /test-clock/{id}', 'clock'],
  ['POST /test-clock/advance', 'clock', (testClockId) => ({ testClockId, to: 1 })],
  [
    'POST /payments/charge-tokenised-pm',
    'customer',
    (customerId, { theirs }) => tokenisedBody({ customerId, pmId: theirs.method }),
  ],
  [
    'POST /payments/charge-tokenised-pm',
    'method',
    (pmId, { myCustomer }) => tokenisedBody({ customerId: myCustomer, pmId }),
  ],
  ['POST /payments/cancel/{id}', 'intent', (xIntentId) => ({ xIntentId })],
  ['POST /payments/create-intent', 'customer', (customerId) => intentBody({ customerId })],
  ['GET /payments/v2/get-intent/{id}', 'intent'],
  ['POST /payments/merchant/refund', 'intent', (xIntentId) => ({ xIntentId })],
  ['POST /setup-method/create', 'customer', (customerId) => setupBody({ customerId })],
  ['GET /setup-method/{id}', 'setup'],
];

function linkBody(customerId: string): object {
  return { ...subscriptionBody({ customerId }), expiryDate: IN_A_YEAR };
}

/** A well-formed id that does not exist, and the words of the refusal. */
const UNKNOWN: Record<Kind, [id: string, words: string]> = {
  customer: [UNKNOWN_IDS.customer, 'customer'],
  subscription: [UNKNOWN_IDS.subscription, 'subscription'],
  event: ['evt_0000000000000000000000', 'event'],
  webhook: ['whc_0000000000000000000000', 'webhook configuration'],
  clock: ['clk_0000000000000000000000', 'test clock'],
  intent: [UNKNOWN_IDS.intent, 'payment intent'],
  setup: [UNKNOWN_IDS.setup, 'setup method'],
  method: [UNKNOWN_IDS.method, 'payment method'],
};

test.for(PLACES)(
  '%s refuses another merchant’s %s exactly as an unknown one [D-11, D-21, D-36, D-41, D-56, IF-4.2, D-§7]',
  async ([place, kind, bodyOf], { api, ids }) => {
    const [unknownId, words] = UNKNOWN[kind];
    const rows = await api.countRows();
    const commands = [api.workflows.calls.length, api.orders.calls.length];
    const call = (id: string) => {
      const [method = '', path = ''] = place.replace('{id}', id).split(' ');
      return api.call(method, path, bodyOf === undefined ? {} : { body: bodyOf(id, ids) });
    };

    const foreign = await call(ids.theirs[kind]);
    const unknown = await call(unknownId);

    expect(comparable(foreign)).toEqual(comparable(unknown));
    expect(outcome(foreign)).toEqual(notFoundAnswer(words));
    expect(await api.countRows()).toEqual(rows);
    expect([api.workflows.calls.length, api.orders.calls.length]).toEqual(commands);
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
