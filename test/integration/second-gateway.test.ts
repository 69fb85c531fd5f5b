import { Readable } from 'node:stream';
import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import { recorder } from '../../cli/command-line/operator-action.ts';
import { configureGateway } from '../../cli/merchant/gateway.ts';
import type { GatewayOptions } from '../../cli/merchant/gateway.ts';
import { openBooks } from '../../cli/verify/books.ts';
import { checkBooks } from '../../cli/verify/invariants.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import type { ChargeOutcome, ChargeRequest, SavedCard } from '../../gateways/port.ts';
import type { ListedCharge, Processor } from '../../gateways/processor.ts';
import { PROCESSORS } from '../../gateways/processors.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { onDevServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** A second processor, which is one entry beside that of Stripe. */

const CARD: SavedCard = {
  gatewayMethodId: 'card_1',
  brand: 'visa',
  country: 'DE',
  lastFourDigit: '4242',
  expiryMonth: 12,
  expiryYear: 2034,
};

const charges = new Map<string, ListedCharge>();
let card = CARD;

function outcomeOf(key: string) {
  const found = charges.get(key);
  return found && ({ kind: 'succeeded', gatewayChargeId: found.gatewayChargeId } as const);
}

function charge({ key, amountMinor, currency, reference }: ChargeRequest): ChargeOutcome {
  const { merchantId, intentId, subscriptionId } = reference;
  const gatewayChargeId = `toy_${charges.size + 1}`;
  const made = { key, gatewayChargeId, outcome: 'succeeded', createdAt: Date.now() } as const;
  const order = { merchantId, intentId, subscriptionId, amountMinor, currency };
  if (!charges.has(key)) charges.set(key, { ...made, ...order });
  return outcomeOf(key) ?? { kind: 'unknown', reason: 'no charge' };
}

/** Keeps its charges in memory. Its page takes a card from every payer at once. */
const toy: Processor = {
  name: 'toy',
  company: 'Toy',
  shownKey: (mode) => `toy_${mode}_…`,
  webhookSecretStart: 'sign_',
  checkKey: async (secretKey) => ({
    accountId: secretKey.replace('toy_test_', ''),
    canCharge: true,
  }),
  openAccount:
    ({ accountId, mode }) =>
    (_secretKey, webhookSecrets) => ({
      name: `toy:${accountId}`,
      capabilities: { payerPresent: false, mode },
      tokeniserUrl: null,
      testCards: [],
      company: 'Toy',
      openCardEntry: async ({ returnUrl }) => {
        const url = new URL(returnUrl);
        url.searchParams.set('payment_token', `tok_${Date.now()}`);
        return { kind: 'redirect', url: url.href };
      },
      amountProblem: () => null,
      prepare: null,
      charge: async (request) => charge(request),
      lookup: async ({ key }) => outcomeOf(key) ?? { kind: 'absent' },
      withdraw: null,
      refund: async () => ({ kind: 'refused', reason: 'refund_not_possible' }),
      lookupRefund: async () => ({ kind: 'absent' }),
      saveMethod: async ({ token }) => ({
        kind: 'saved',
        card,
        enteredAt: Number(token.replace('tok_', '')),
      }),
      readEvents: (rawBody, headers) =>
        webhookSecrets.includes(String(headers['toy-signature']))
          ? [
              {
                kind: 'method',
                eventId: rawBody.toString(),
                type: 'card',
                gatewayMethodId: 'card_1',
              },
            ]
          : 'bad_signature',
      lookupDispute: null,
      lookupFraudWarning: null,
      newestCharge: null,
      lookupMethod: async () => ({ kind: 'found', card }),
    }),
  async *readBook() {
    yield { charges: [...charges.values()], refunds: [] };
  },
};

const processors = [...PROCESSORS, toy];
const test = onDevServerWith({ processors });

/** Runs `npm run merchant -- gateway <merchant> toy` with a secret as standard input. */
function configure(env: TestEnvironment, secret: string, options: GatewayOptions) {
  const { db, sealing, merchantId } = env;
  const input = Readable.from(secret);
  const place = { db, sealing: () => sealing, doubleUrls: {}, input, record: recorder('test') };
  return configureGateway(place, merchantId, toy, options);
}

/** The violations that `npm run verify` finds with the toy's book. */
async function verify({ databaseUrl, sealing }: TestEnvironment) {
  const accounts = { sealing, doubleUrls: {}, processors, days: 1 };
  const places = { databaseUrl, gateway: null, accounts, receiverBook: null, clientBook: null };
  const books = await openBooks(places);
  try {
    expect(books.unread).toEqual(new Map());
    const results = await checkBooks(books);
    return results.flatMap(({ wrong }) => wrong);
  } finally {
    await books.close();
  }
}

test('a processor of one entry takes a checkout, a renewal, an event and a comparison of books [D-20]', async ({
  env,
  shop,
}) => {
  const { merchantId } = env;
  await configure(env, 'toy_test_acc1', { keyFile: '-' });
  const { lines } = await configure(env, 'sign_1', { webhookSecretFile: '-' });
  expect(lines).toEqual([
    `Merchant ${merchantId}, test mode:`,
    '  toy  acc1  key …acc1  webhook secret set  current',
  ]);

  const clock = await shop.createClock(Date.parse('2027-01-31T12:00:00Z'));
  const { subscriptionId, fwdUrl } = await shop.subscribe({ testClockId: clock.testClockId });
  const ref = { merchantId, subscriptionId };
  await env.confirmStart(ref);
  expect((await payOnPage(fwdUrl)).title).toBe('Thank you: your payment was received');
  expect(await shop.news(subscriptionId, 6)).toEqual([
    '2027-01-31 12:00 intent.created CREATED 1999 USD',
    '2027-01-31 12:00 subscription.created CREATED 1999 USD',
    '2027-01-31 12:00 intent.checkout_opened CREATED 1999 USD',
    '2027-01-31 12:00 intent.success SUCCESS 1999 USD',
    '2027-01-31 12:00 subscription.cycle_charged ACTIVE 1999 USD, cycle 1, 11 left, next 2027-02-28 12:00',
    '2027-01-31 12:00 subscription.active ACTIVE 1999 USD, next 2027-02-28 12:00',
  ]);
  await clock.advance(Date.parse('2027-02-28T12:00:00Z'));
  expect(await shop.news(subscriptionId, 3)).toEqual([
    '2027-02-28 12:00 intent.created CREATED 1999 USD',
    '2027-02-28 12:00 intent.success SUCCESS 1999 USD',
    '2027-02-28 12:00 subscription.cycle_charged ACTIVE 1999 USD, cycle 2, 10 left, next 2027-03-31 12:00',
  ]);

  card = { ...CARD, lastFourDigit: '1881' };
  const postEvent = async (signature: string) => {
    const url = `${shop.url}/gateways/toy/events/acc1`;
    const headers = { 'toy-signature': signature };
    return (await fetch(url, { method: 'POST', headers, body: 'ev_1' })).status;
  };
  expect([await postEvent('sign_2'), await postEvent('sign_1')]).toEqual([400, 200]);
  const { gateway, lastFourDigit } = paymentMethods;
  const saved = () =>
    env.db
      .select({ gateway, lastFourDigit })
      .from(paymentMethods)
      .where(eq(paymentMethods.merchantId, merchantId));
  await eventually(async () =>
    expect(await saved()).toEqual([{ gateway: 'toy:acc1', lastFourDigit: '1881' }]),
  );

  expect(await verify(env)).toEqual([]);
  const [first] = charges.values();
  if (first === undefined) throw new Error('no charge');
  charges.set(first.key, { ...first, amountMinor: 2_000 });
  expect(await verify(env)).toEqual([
    `${first.key}: the gateway charged 2000 USD, but 1999 USD was owed`,
  ]);
  charges.set(first.key, first);

  await clock.advance(Date.parse('2027-03-31T11:59:59.999Z'));
  await shop.expectAllDelivered(subscriptionId);
  expect(await shop.news(subscriptionId, 0)).toEqual([]);
  expect(await env.sweep()).toEqual(NOTHING_FOUND);
  const booked = [...charges.values()].map(({ outcome, amountMinor, currency }) =>
    [outcome, amountMinor, currency].join(' '),
  );
  expect(booked).toEqual(['succeeded 1999 USD', 'succeeded 1999 USD']);
  expect(await env.book(ref)).toEqual([]);
});
