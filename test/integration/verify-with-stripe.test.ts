import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { merchants } from '../../db/schema/merchants.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { openBooks } from '../../cli/verify/books.ts';
import { checkBooks } from '../../cli/verify/invariants.ts';
import { onDevServer } from '../support/environment.ts';
import { KEEP_ALIVE_MS } from '../../tools/scripts/client/listen.ts';
import { enterAccount, saveCardAtStripe } from '../support/stripe-merchant.ts';
import { savedCard, startStripe } from '../support/stripe.ts';
import { createEnvironment } from '../support/test-environment.ts';
import { paymentsIn } from '../support/payments.ts';

/** `npm run verify` compares our rows with the gateway's book, which is here Stripe's list of charges. */

const NOT_GIVEN = [
  'no book of a webhook receiver: --receiver-book is not set',
  'no book of a client: --client-book is not set',
  'no book of a client: --client-book is not set',
];
const DECLINED_CARD = '4000000000000341';

/** A merchant with a Stripe account, one payment with a refund of 9.00 USD, and one declined payment. */
const test = onDevServer.extend('books', { scope: 'file' }, async ({ server }, { onCleanup }) => {
  // The time in ms by which the double dates its objects back.
  const clock = { backMs: 0 };
  const world = await startStripe({ now: () => Date.now() - clock.backMs });
  const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
  onCleanup(async () => {
    await env.close();
    await world.close();
  });
  const payments = paymentsIn(env);
  const account = await world.account();
  await enterAccount(env, account);
  const charge = async (number?: string) => {
    const { customerId, pmId } = await saveCardAtStripe(env, payments, number);
    const ref = await payments.payment('tokenised', { customerId, paymentMethodId: pmId });
    await env.activities.chargePayment({ ...ref, token: null, nowAt: Date.now() });
    return ref;
  };
  const paid = await charge();
  await charge(DECLINED_CARD);
  const { ref: refund } = await payments.refund(paid, 900);
  await env.activities.refundPayment({ ...refund, nowAt: Date.now() });
  // A sale on the same account that is not ours.
  await account.stripe.paymentIntents
    .create({
      amount: 700,
      currency: 'usd',
      payment_method_types: ['card'],
      ...(await savedCard(account.stripe)),
    })
    .then(({ id }) => account.stripe.paymentIntents.confirm(id, { off_session: true }));

  const check = async (url = world.proxy.url) => {
    const { databaseUrl, sealing } = env;
    const accounts = { sealing, doubleUrls: { stripe: url }, days: 1 };
    const place = { databaseUrl, gateway: null, accounts };
    const opened = await openBooks({ ...place, receiverBook: null, clientBook: null });
    try {
      const results = await checkBooks(opened);
      return {
        wrong: results.flatMap(({ wrong }) => wrong),
        unchecked: results.flatMap(({ unchecked }) => unchecked.map(({ reason }) => reason)),
        counted: [1, 2, 3, 10].map(
          (wanted) => results.find(({ invariant }) => invariant === wanted)?.counted,
        ),
      };
    } finally {
      await opened.close();
    }
  };
  return {
    env,
    account,
    paid,
    payments,
    clock,
    stripeUrl: world.proxy.url,
    check,
    run: (query: string) => env.db.execute<Record<string, unknown>>(sql.raw(query)),
  };
});

test('npm run verify reports nothing for a correct book at Stripe, and reports each difference from our rows [D-40]', async ({
  books,
}) => {
  const { paid, check, run } = books;
  const key = `charge:${paid.intentId}:1`;
  const right = await check();
  expect(right).toEqual({ wrong: [], unchecked: NOT_GIVEN, counted: [6, 0, 2, 6] });

  const [attempt] = await run(`select state from payment_attempt where gateway_key = '${key}'`);
  expect(attempt).toEqual({ state: 'SUCCEEDED' });
  const damages = [
    [
      `update payment_attempt set state = 'DECLINED' where gateway_key = '${key}'`,
      `update payment_attempt set state = 'SUCCEEDED' where gateway_key = '${key}'`,
      `attempt ${key} is DECLINED here and succeeded in the gateway's book`,
    ],
    [
      `update payment_attempt set gateway_key = 'charge:other:1' where gateway_key = '${key}'`,
      `update payment_attempt set gateway_key = '${key}' where gateway_key = 'charge:other:1'`,
      `attempt charge:other:1 is SUCCEEDED here and absent in the gateway's book`,
    ],
    [
      `update payment_intent set amount_minor = 5001 where id = '${paid.intentId}'`,
      `update payment_intent set amount_minor = 5000 where id = '${paid.intentId}'`,
      `${key}: the gateway charged 5000 USD, but 5001 USD was owed`,
    ],
    [
      `update refund set amount_minor = 800`,
      `update refund set amount_minor = 900`,
      `${key}: the gateway refunded 900, our refunds have 800`,
    ],
  ] as const;
  for (const [damage, undo, found] of damages) {
    await run(damage);
    expect((await check()).wrong).toContain(found);
    await run(undo);
  }
  expect(await check()).toEqual(right);
});

test('npm run verify reads a Stripe account that a test and a live merchant share, each with its own key [D-20]', async ({
  books,
}) => {
  const { env, account, paid, check, run } = books;
  const before = await check();
  const live = { id: 'mer_live', name: 'Live', mode: 'live' } as const;
  const settings = { retryPlan: DEFAULT_RETRY_PLAN };
  await env.db.insert(merchants).values({ ...live, settings, createdAt: Date.now() });
  await enterAccount({ ...env, merchantId: live.id }, account, live.mode);
  expect(before.wrong).toEqual([]);
  expect(await check()).toEqual(before);

  const key = `charge:${paid.intentId}:1`;
  await run(`update payment_attempt set state = 'DECLINED' where gateway_key = '${key}'`);
  expect((await check()).wrong).toContain(
    `attempt ${key} is DECLINED here and succeeded in the gateway's book`,
  );
  await run(`update payment_attempt set state = 'SUCCEEDED' where gateway_key = '${key}'`);
});

test('npm run verify reports nothing for a refund that is made after its snapshot of our rows [D-40]', async ({
  books,
}) => {
  const { env, paid, payments, stripeUrl, check, run } = books;
  const before = await check();
  expect(before.wrong).toEqual([]);
  const gate = await startGate(stripeUrl, async () => {
    const { ref } = await payments.refund(paid, 300);
    await env.activities.refundPayment({ ...ref, nowAt: Date.now() });
  });
  try {
    expect((await check(gate.url)).wrong).toEqual([]);
  } finally {
    await gate.close();
  }
  const [row] = await run(`select count(*)::int as n from refund where state = 'SUCCEEDED'`);
  expect(row).toEqual({ n: 2 });
  expect((await check()).wrong).toEqual([]);
});

test('npm run verify reports a refund and a second charge that were made at Stripe without the service [D-40]', async ({
  books,
}) => {
  const { account, paid, clock, check, run } = books;
  const key = `charge:${paid.intentId}:1`;
  const [attempt] = await run(
    `select gateway_charge_id as id from payment_attempt where gateway_key = '${key}'`,
  );
  clock.backMs = 60_000;
  await account.stripe.refunds.create({ payment_intent: String(attempt?.['id']), amount: 100 });
  expect((await check()).wrong).toEqual([
    `${key}: the gateway refunded 1300, our refunds have 1200`,
  ]);
  const { merchantId, intentId } = paid;
  const { id } = await account.stripe.paymentIntents.create({
    amount: 5_000,
    currency: 'usd',
    payment_method_types: ['card'],
    metadata: { key, merchantId, intentId, paymentMethodId: 'pmt_other' },
    ...(await savedCard(account.stripe)),
  });
  await account.stripe.paymentIntents.confirm(id, { off_session: true });
  expect((await check()).wrong).toContain(`${intentId} was charged 2 times in the gateway's book`);
});

test('npm run verify names an account that cannot be read, and checks the others [D-20]', async ({
  books,
}) => {
  const { paid, check, run } = books;
  const before = await check();
  await run(`insert into merchant_gateway select (jsonb_populate_record(g,
    '{"name": "stripe:acct_unread", "sealed_key": "\\\\x00", "mode": "live", "is_current": false}')).*
    from merchant_gateway g where merchant_id = '${paid.merchantId}'`);
  await run(`update payment_attempt set gateway = 'stripe:acct_unread' where state = 'DECLINED'`);
  const after = await check();
  expect(after.wrong).toEqual(before.wrong);
  expect(after.unchecked.filter((reason) => !before.unchecked.includes(reason))).toEqual(
    Array.from({ length: 3 }, () =>
      expect.stringMatching(/^1 attempts at the gateway stripe:acct_unread: .*(decrypt|sealed)/i),
    ),
  );
});

/** Starts a server before `targetUrl` that finishes `action` before it forwards the first request. */
async function startGate(targetUrl: string, action: () => Promise<void>) {
  let acted: Promise<void> | undefined;
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void (async () => {
      await (acted ??= action());
      const { authorization = '' } = request.headers;
      const answer = await fetch(`${targetUrl}${request.url}`, { headers: { authorization } });
      response.writeHead(answer.status, { 'content-type': 'application/json' });
      response.end(await answer.text());
    })();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async (): Promise<void> => {
      server.closeAllConnections();
      server.close();
      await acted;
    },
  };
}
