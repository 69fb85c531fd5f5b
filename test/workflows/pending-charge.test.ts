import { beforeEach, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { listReviews } from '../../db/repositories/payments/reviews.ts';
import { expectFirstDay, FIRST_DAY_CALLS, noteCall } from '../support/call-times.ts';
import { SESSION } from '../support/card-tokens.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { enterAccount, tokenAtStripe } from '../support/stripe-merchant.ts';
import { onStripe } from '../support/stripe.ts';
import { startTimeSkippingServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';

/** A charge that Stripe has and decides days later, for example a bank debit. Stripe sends no events here. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The workflow times, in epoch ms, of the calls of the activity chargeAttempt. */
const calledAt: number[] = [];
/** Most calls of the first day are not made. They return pending, as if Stripe had not decided the charge. */
const isMade = (call: number) => call < 5 || call > 308;

const test = onStripe
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('server', async ({}, { onCleanup }) => {
    const server = await startTimeSkippingServer();
    onCleanup(() => server.teardown());
    return server;
  })
  .extend('env', async ({ server, world }, { onCleanup }) => {
    const env = await createEnvironment(server, {
      stripeUrl: world.proxy.url,
      sendBudget: { newSendsForMs: 200, pauseMs: 100 },
      wrap: (activities: Activities): Activities => ({
        ...activities,
        chargeAttempt: (input) => {
          noteCall(calledAt, input.realNowAt);
          return isMade(calledAt.length) ? activities.chargeAttempt(input) : pending();
        },
      }),
    });
    onCleanup(() => env.close());
    return env;
  });

beforeEach(() => {
  calledAt.length = 0;
});

const pending = async () => ({ kind: 'pending' }) as const;

test('a charge that stays in progress for days is looked up every 5 min, then daily, is never reviewed, and is paid once [D-40]', async ({
  env,
  world,
}) => {
  const account = await world.account();
  await enterAccount(env, account);
  const createdAt = await env.server.currentTimeMs();
  const ref = await env.create({ createdAt, terms: { cycleCount: 2, interval: 'DAY' } });
  await payCheckout(env, ref, await tokenAtStripe(env, SESSION));
  await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(1);
  const metadata = { merchantId: env.merchantId };
  await world.control('POST', 'outcomes', { kind: 'processing', count: 1, metadata });
  calledAt.length = 0;
  await env.server.sleep(DAY + 25.5 * HOUR);
  await expect.poll(() => calledAt).toHaveLength(FIRST_DAY_CALLS);
  expectFirstDay(calledAt);
  expect((await env.state(ref)).openAttempt).toMatchObject({ lookups: FIRST_DAY_CALLS });

  await env.server.sleep(DAY);
  const path = '/v1/payment_intents/*';
  const fault = { method: 'GET', path, fault: 'lose_request', count: 1_000 };
  await world.faults('POST', 'faults', fault);
  await env.server.sleep(DAY);
  await world.faults('DELETE', 'faults');
  await env.server.sleep(DAY);
  await expect.poll(() => calledAt).toHaveLength(FIRST_DAY_CALLS + 3);
  const daily = calledAt.slice(FIRST_DAY_CALLS);
  expect(
    daily.map((at, n) => Math.round((at - calledAt[FIRST_DAY_CALLS - 1 + n]!) / HOUR)),
  ).toEqual([24, 24, 24]);
  expect((await env.state(ref)).openAttempt?.reviewReason).toBeUndefined();

  const intents = async () => (await account.stripe.paymentIntents.list()).data.toReversed();
  const lines = async () => (await intents()).map(({ status, amount }) => `${status} ${amount}`);
  expect(await lines()).toEqual(['succeeded 1999', 'processing 1999']);
  await world.control('POST', 'settle', { paymentIntentId: (await intents())[1]?.id });
  await env.server.sleep(DAY);
  await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
  expect((await env.events(ref)).map((event) => event['eventType']).slice(-4)).toEqual([
    'intent.created',
    'intent.success',
    'subscription.cycle_charged',
    'subscription.ended',
  ]);
  expect(await listReviews(env.db, { settled: false, limit: 10 })).toEqual([]);
  const asked = calledAt.length;
  await env.server.sleep(3 * DAY);
  expect(calledAt).toHaveLength(asked);
  expect(await lines()).toEqual(['succeeded 1999', 'succeeded 1999']);
});
