import { randomUUID } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { onDevServer } from '../support/environment.ts';
import { repairsOf } from '../support/repairs.ts';
import { enterAccount, saveCardAtStripe } from '../support/stripe-merchant.ts';
import { startStripe } from '../support/stripe.ts';
import { openWorkerScenario } from '../support/worker-scenario.ts';
import type { WorkerScenario } from '../support/worker-scenario.ts';

/**
 * The rows of the crash table of docs/architecture.md that apply only to a gateway with prepared charges. A worker
 * process is killed while it charges a card at the Stripe double. Then another worker continues.
 */

const test = onDevServer
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('stripe', { scope: 'file' }, async ({}, { onCleanup }) => {
    const stripe = await startStripe();
    onCleanup(() => stripe.close());
    return stripe;
  })
  .extend('scenario', async ({ server, stripe }, { onCleanup }) => {
    const scenario = await openWorkerScenario(server, { stripeUrl: stripe.proxy.url });
    onCleanup(() => scenario.close());
    return scenario;
  });

const KILLED = { code: null, signal: 'SIGKILL' };
const CHARGE = '/payments/charge-tokenised-pm';

/**
 * Saves a card at a new Stripe account of the merchant. Returns functions that request a charge, and that read its
 * attempts and Stripe's records.
 */
async function shopWithCard(
  scenario: WorkerScenario,
  world: Awaited<ReturnType<typeof startStripe>>,
) {
  const { env, shop, payments, merchantId } = scenario;
  const account = await world.account();
  await enterAccount(env, account);
  const { setupMethodId, ...card } = await saveCardAtStripe(env, payments);
  const body = { ...card, currency: 'USD', amount: 2_500 };
  const key = randomUUID();
  return {
    cardSaved: () =>
      scenario.expectTold('setupMethodId', setupMethodId, ['1 setup_method.success']),
    ask: () => shop.merchant.post<{ intentId: string }>(CHARGE, body, key).catch(() => undefined),
    answer: () => scenario.answerTo(CHARGE, body, key),
    intentId: async () => {
      const [row] = await env.db.execute<{ id: string }>(sql`select id from payment_intent`);
      return String(row?.id);
    },
    attempts: async () =>
      (
        await env.db.execute<{ line: string }>(sql`
          select attempt_number || ' ' || state
            || case when gateway_charge_id is null then '' else ' with its id' end as line
          from payment_attempt order by id`)
      ).map(({ line }) => line),
    /** Stripe's PaymentIntents, oldest first. */
    atStripe: async () =>
      (await account.stripe.paymentIntents.list()).data
        .toReversed()
        .map(({ status, amount }) => `${status} ${amount}`),
    /** Stripe's charges, each with the number of confirm requests. */
    charges: async () => {
      const { charges } = await world.control('GET', `charges?accountId=${account.id}`);
      return (charges as { status: string; amountMinor: number; confirmCount: number }[]).map(
        ({ status, amountMinor, confirmCount }) => `${status} ${amountMinor} x${confirmCount}`,
      );
    },
    /** Expects that nothing happens after the payment's events, and that no sweep repaired anything. */
    expectNoMore: async (intentId: string) => {
      const events = ['1 intent.created', '2 intent.success'];
      await scenario.expectTold('intentId', intentId, events);
      expect(await repairsOf(env)).toEqual({});
      expect(await payments.attempts({ merchantId, intentId })).toEqual(['1 SUCCEEDED']);
    },
  };
}

test('a worker that crashes at the failpoint after_prepare leaves a PaymentIntent, which the next worker prepares again and charges once [D-39, D-40, D-54]', async ({
  scenario,
  stripe,
}) => {
  const shop = await shopWithCard(scenario, stripe);
  const crashing = await scenario.startMortal('after_prepare');
  await shop.cardSaved();
  const first = shop.ask();
  expect(await crashing.gone).toMatchObject(KILLED);
  expect(await shop.attempts()).toEqual(['1 SENDING']);
  expect(await shop.atStripe()).toEqual(['requires_confirmation 2500']);

  await scenario.goOn();
  await first;
  const intentId = await shop.intentId();
  expect(await shop.answer()).toEqual({ intentId, status: 'SUCCESS' });
  await shop.expectNoMore(intentId);
  expect(await shop.atStripe()).toEqual(['succeeded 2500']);
  expect(await shop.charges()).toEqual(['succeeded 2500 x1']);
});

test('a worker that is killed after it sent a confirmation leaves an attempt SENDING; Stripe charges once when the next worker confirms again [D-40, D-54]', async ({
  scenario,
  stripe,
}) => {
  const shop = await shopWithCard(scenario, stripe);
  const crashing = await scenario.startMortal();
  await shop.cardSaved();
  const held = async () => (await stripe.control('GET', 'holds'))['held'];
  await stripe.control('POST', 'holds', { path: '/v1/payment_intents/*/confirm', count: 2 });
  const first = shop.ask();
  await expect.poll(held).toBe(1);
  crashing.kill();
  expect(await crashing.gone).toMatchObject(KILLED);
  expect(await shop.attempts()).toEqual(['1 SENDING with its id']);
  expect(await shop.atStripe()).toEqual(['requires_confirmation 2500']);

  // The look-up shows a PaymentIntent without confirmation, so the next worker confirms it, too.
  await scenario.goOn();
  await expect.poll(held).toBe(2);
  // The request of the killed worker charges. Stripe refuses the confirmation of the next worker.
  await stripe.control('POST', 'holds/release', { count: 1 });
  await expect.poll(() => shop.atStripe()).toEqual(['succeeded 2500']);
  await stripe.control('POST', 'holds/release', {});
  await first;
  const intentId = await shop.intentId();
  expect(await shop.answer()).toEqual({ intentId, status: 'SUCCESS' });
  await shop.expectNoMore(intentId);
  expect(await shop.atStripe()).toEqual(['succeeded 2500']);
  expect(await shop.charges()).toEqual(['succeeded 2500 x2']);
});
