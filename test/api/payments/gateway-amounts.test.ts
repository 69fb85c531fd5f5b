import { describe, expect } from 'vitest';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { PaymentGateway } from '../../../gateways/port.ts';
import { oneGateway } from '../../support/one-gateway.ts';
import { createStripeGateway } from '../../../gateways/stripe/adapter.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import {
  UNAVAILABLE,
  intentBody,
  outcome,
  refusal,
  saveCard,
  setupBody,
  tokenisedBody,
} from '../../support/fixtures/payments.ts';
import { readSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import { paymentLinkBody, PAYMENT_LINK } from '../../support/hosted-pages/links.ts';

/** The Stripe adapter applies its rules for amounts without a request, so no server listens at its URL. */
const stripe = createStripeGateway({
  secretKey: 'sk_test_amounts',
  accountId: 'acct_amounts',
  timeoutMs: 5_000,
  url: 'http://127.0.0.1:2',
});

const test = apiTest.extend('apiOptions', { scope: 'file' }, { gateways: oneGateway(stripe) });

const STEP = 'must be a multiple of 10 in KWD, because Stripe charges no other amount';
const refused = (errorDescription: string) => [400, { errorCode: 'bad_request', errorDescription }];

const CREATE = '/subscription/create';
const LINK = '/subscription/link/merchant/generate-link';
const linkBody = (changes: object) =>
  subscriptionBody({ expiryDate: Date.now() + 86_400_000, ...changes });

describe('an amount that Stripe cannot charge', () => {
  test.for([
    [
      'a subscription',
      CREATE,
      subscriptionBody({ amount: 1_234, currency: 'KWD' }),
      `amount: ${STEP}`,
    ],
    [
      'a first cycle',
      CREATE,
      subscriptionBody({ amount: 1_230, upfrontAmount: 2_345, currency: 'KWD' }),
      `upfrontAmount: ${STEP}`,
    ],
    [
      'a simulated subscription',
      '/subscription/simulate',
      subscriptionBody({ amount: 1_234, currency: 'KWD' }),
      `amount: ${STEP}`,
    ],
    [
      'a simulated edit',
      '/subscription/simulate',
      subscriptionBody({
        amount: 1_230,
        currency: 'KWD',
        script: [{ at: 1_830_000_000_000, command: 'edit', newAmount: 1_235 }],
      }),
      `script[0].newAmount: ${STEP}`,
    ],
    [
      'a subscription whose amount has more than eight digits at Stripe',
      CREATE,
      subscriptionBody({ amount: 1_000_000, currency: 'ISK' }),
      'amount: must have at most eight digits at Stripe',
    ],
    [
      'a subscription with a fraction of an ariary',
      CREATE,
      subscriptionBody({ amount: 500_050, currency: 'MGA' }),
      'amount: must be a multiple of 100 in MGA, because Stripe charges no other amount',
    ],
    [
      'a trial in a currency that Stripe does not have',
      CREATE,
      subscriptionBody({
        amount: 100_000,
        currency: 'SDG',
        trialPeriodInterval: 'DAY',
        trialPeriodCount: 7,
      }),
      'amount: cannot be in SDG, which Stripe does not charge',
    ],
    ['a link to subscribe', LINK, linkBody({ amount: 1_234, currency: 'KWD' }), `amount: ${STEP}`],
    [
      'a link to pay once',
      PAYMENT_LINK,
      paymentLinkBody({ amount: 1_234, currency: 'KWD' }),
      `amount: ${STEP}`,
    ],
    [
      'a hosted payment below Stripe’s minimum',
      '/payments/create-intent',
      intentBody({ amount: 45, currency: 'EUR' }),
      'amount: must be at least 50 in EUR, which is the minimum charge of Stripe',
    ],
  ] as const)('is refused at once for %s [D-03]', async ([, path, body, description], { api }) => {
    const rows = await api.countRows();
    expect(outcome(await api.call('POST', path, { body }))).toEqual(refused(description));
    expect(await api.countRows()).toEqual(rows);
  });

  test('is refused in an edit, and the subscription keeps its amount [D-03]', async ({ api }) => {
    const subscription = await subscriptionIn(api, 'ACTIVE', { amount: 1_230, currency: 'KWD' });
    const { subscriptionId } = subscription;
    const edit = (newAmount: number) =>
      api.call('POST', '/subscription/edit', { body: { subscriptionId, newAmount } });
    expect(outcome(await edit(1_234))).toEqual(refused(`newAmount: ${STEP}`));
    expect(await readSubscription(api, subscription)).toMatchObject({ amount: 1_230 });
    expect(outcome(await edit(1_240))).toEqual([200, {}]);
    expect(await readSubscription(api, subscription)).toMatchObject({ amount: 1_240 });
  });

  test('is refused in a tokenised charge and in a partial refund [D-03]', async ({ api }) => {
    const method = await saveCard(api);
    const charge = (amount: number) =>
      api.call('POST', '/payments/charge-tokenised-pm', {
        body: tokenisedBody(method, { amount, currency: 'KWD' }),
      });
    expect(outcome(await charge(12_345))).toEqual(refused(`amount: ${STEP}`));
    const paid = await charge(12_340);
    expect(paid.json).toMatchObject({ status: 'SUCCESS' });
    const { intentId: xIntentId } = paid.json as { intentId: string };
    const refund = (amount: number) =>
      api.call('POST', '/payments/merchant/refund', { body: { xIntentId, amount } });
    expect(outcome(await refund(1_234))).toEqual(refused(`amount: ${STEP}`));
    // A refund has no minimum.
    expect((await refund(10)).json).toMatchObject({ amount: 10, currency: 'KWD' });
    expect(api.orders.refunds.map(({ amountMinor }) => amountMinor)).toEqual([10]);
  });

  test.for([
    {
      order: 'a subscription',
      path: CREATE,
      bodyOf: async () => (amount: number) => subscriptionBody({ amount, currency: 'KWD' }),
    },
    {
      order: 'a tokenised charge',
      path: '/payments/charge-tokenised-pm',
      bodyOf: async (api: ApiEnvironment) => {
        const method = await saveCard(api);
        return (amount: number) => tokenisedBody(method, { amount, currency: 'KWD' });
      },
    },
    {
      order: 'a one-time charge',
      path: '/subscription/merchant/one-time-charge',
      bodyOf: async (api: ApiEnvironment) => {
        const { subscriptionId } = await subscriptionIn(api, 'ACTIVE');
        return (amount: number) => ({ subscriptionId, amount, currency: 'KWD' });
      },
    },
    {
      order: 'a refund',
      path: '/payments/merchant/refund',
      bodyOf: async (api: ApiEnvironment) => {
        const body = tokenisedBody(await saveCard(api), { amount: 12_340, currency: 'KWD' });
        const { json } = await api.call('POST', '/payments/charge-tokenised-pm', { body });
        const { intentId: xIntentId } = json as { intentId: string };
        return (amount: number) => ({ xIntentId, amount });
      },
    },
  ])(
    'is refused for $order without using up the Idempotency-Key [D-03, D-17]',
    async ({ path, bodyOf }, { api }) => {
      const body = await bodyOf(api);
      const send = (amount: number) =>
        api.call('POST', path, { body: body(amount), key: 'stripe-amount' });
      const rows = await api.countRows();
      for (const amount of [1_234, 2_345, 1_234]) {
        expect(outcome(await send(amount))).toEqual(refused(`amount: ${STEP}`));
      }
      expect(await api.countRows()).toEqual(rows);
      const made = await send(1_230);
      expect(made.status).toBe(200);
      const after = await api.countRows();
      const again = await send(1_230);
      expect([again.headers['idempotent-replayed'], again.text]).toEqual(['true', made.text]);
      expect(await api.countRows()).toEqual(after);
    },
  );
});

test('a repeat with the key of a refund that was made returns the refund when the merchant has changed to a gateway that refuses the amount [D-03, D-17]', async ({
  createApi,
}) => {
  const now: { gateway: PaymentGateway } = { gateway: { ...stripe, amountProblem: () => null } };
  const gateways = { ...oneGateway(stripe), forNewMethods: async () => now.gateway };
  const api = await createApi({ gateways });
  const paid = await api.call('POST', '/payments/charge-tokenised-pm', {
    body: tokenisedBody(await saveCard(api), { amount: 12_340, currency: 'KWD' }),
  });
  const { intentId: xIntentId } = paid.json as { intentId: string };
  const refund = (key: string) =>
    api.call('POST', '/payments/merchant/refund', { body: { xIntentId, amount: 1_234 }, key });
  api.orders.faults.losesOutcome = true;
  expect(outcome(await refund('made'))).toEqual(UNAVAILABLE);

  api.orders.faults.losesOutcome = false;
  now.gateway = stripe;
  expect((await refund('made')).json).toMatchObject({ intentId: xIntentId, amount: 1_234 });
  expect(outcome(await refund('another'))).toEqual(refused(`amount: ${STEP}`));
  expect(api.orders.refunds.map(({ amountMinor }) => amountMinor)).toEqual([1_234]);
});

test('a repeat with the key of an edit is answered as before when the merchant has changed to a gateway that refuses the amount [D-03, D-17]', async ({
  createApi,
}) => {
  const now: { gateway: PaymentGateway } = { gateway: { ...stripe, amountProblem: () => null } };
  const api = await createApi({
    gateways: { ...oneGateway(stripe), forNewMethods: async () => now.gateway },
  });
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE', {
    amount: 1_230,
    currency: 'KWD',
  });
  const body = { subscriptionId, newAmount: 1_234 };
  const edit = (key: string) => api.call('POST', '/subscription/edit', { body, key });
  expect(outcome(await edit('made'))).toEqual([200, {}]);
  now.gateway = stripe;
  expect(outcome(await edit('made'))).toEqual([200, {}]);
  expect(outcome(await edit('another'))).toEqual(refused(`newAmount: ${STEP}`));
});

test('a repeat with the key of an edit that failed before its amount was checked is refused [D-03, D-17]', async ({
  createApi,
}) => {
  const now = { isAway: false };
  const forNewMethods = async () => {
    if (now.isAway) throw new DomainError('service_unavailable');
    return stripe;
  };
  const api = await createApi({ gateways: { ...oneGateway(stripe), forNewMethods } });
  const { subscriptionId } = await subscriptionIn(api, 'ACTIVE', {
    amount: 1_230,
    currency: 'KWD',
  });
  const body = { subscriptionId, newAmount: 1_234 };
  const edit = () => api.call('POST', '/subscription/edit', { body, key: 'unchecked' });
  now.isAway = true;
  expect(outcome(await edit())).toEqual(UNAVAILABLE);
  now.isAway = false;
  expect(outcome(await edit())).toEqual(refused(`newAmount: ${STEP}`));
});

test('the sandbox takes an amount that Stripe cannot charge [D-03]', async ({ createApi }) => {
  const api = await createApi({});
  const body = subscriptionBody({ amount: 1_234, currency: 'KWD' });
  expect((await api.call('POST', CREATE, { body })).status).toBe(200);
});

test('a live merchant without a gateway can create no subscription, link, hosted payment or setup session [D-20]', async ({
  createApi,
}) => {
  const api: ApiEnvironment = await createApi({});
  const live = await createMerchantWithCredential(api.db, {
    name: 'Live Ltd',
    mode: 'live',
    pepper: api.pepper,
  });
  const rows = await api.countRows();
  for (const [path, body] of [
    [CREATE, subscriptionBody()],
    [LINK, linkBody({ callbackUrl: undefined })],
    [PAYMENT_LINK, paymentLinkBody()],
    ['/payments/create-intent', intentBody()],
    ['/setup-method/create', setupBody()],
  ] as const) {
    expect(outcome(await api.call('POST', path, { body, as: live }))).toEqual(
      refusal(
        'This live merchant has no payment gateway. The operator of the service has to add a Stripe account.',
      ),
    );
  }
  expect(await api.countRows()).toEqual(rows);
});
