import { beforeEach, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { listReviews } from '../../db/repositories/payments/reviews.ts';
import { noteCall, secondsFromFirst } from '../support/call-times.ts';
import { SESSION } from '../support/card-tokens.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { enterAccount, tokenAtStripe } from '../support/stripe-merchant.ts';
import { onStripe } from '../support/stripe.ts';
import { startTimeSkippingServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';

/** A charge that Stripe has and decides days later, for example a bank debit. Stripe sends no events here. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Seconds from the first send to each call of the first day: to the send itself, and to each look-up. */
const FIRST_DAY = [
  0,
  10,
  40,
  100,
  400,
  1_300,
  ...Array.from({ length: 24 }, (_, hour) => 1_300 + 3_600 * (hour + 1)),
];

/** The workflow times, in epoch ms, of the calls of the activity chargeAttempt. */
const calledAt: number[] = [];

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
          return activities.chargeAttempt(input);
        },
      }),
    });
    onCleanup(() => env.close());
    return env;
  });

beforeEach(() => {
  calledAt.length = 0;
});

const seconds = () => secondsFromFirst(calledAt);

test('a charge that stays in progress for days is looked up hourly, then daily, is never reviewed, and is paid once [D-40]', async ({
  env,
  world,
}) => {
  const account = await world.account();
  await enterAccount(env, account);
  const createdAt = await env.server.currentTimeMs();
  const ref = await env.create({ createdAt, terms: { cycleCount: 2, interval: 'DAY' } });
  await payCheckout(env, ref, await tokenAtStripe(env, SESSION));
  await eventually(async () => expect((await env.state(ref)).cyclesCharged).toBe(1));
  const metadata = { merchantId: env.merchantId };
  await world.control('POST', 'outcomes', { kind: 'processing', count: 1, metadata });
  calledAt.length = 0;
  await env.server.sleep(DAY + 25 * HOUR);
  await eventually(() => expect(seconds()).toEqual(FIRST_DAY));
  expect((await env.state(ref)).openAttempt).toMatchObject({ lookups: 30 });

  await env.server.sleep(DAY);
  const path = '/v1/payment_intents/*';
  const fault = { method: 'GET', path, fault: 'lose_request', count: 1_000 };
  await world.faults('POST', 'faults', fault);
  await env.server.sleep(DAY);
  await world.faults('DELETE', 'faults');
  await env.server.sleep(DAY);
  await eventually(() => expect(seconds()).toHaveLength(33));
  expect(seconds().slice(30)).toEqual([1, 2, 3].map((days) => 87_700 + days * 86_400));
  expect((await env.state(ref)).openAttempt?.reviewReason).toBeUndefined();

  const intents = async () => (await account.stripe.paymentIntents.list()).data.toReversed();
  const lines = async () => (await intents()).map(({ status, amount }) => `${status} ${amount}`);
  expect(await lines()).toEqual(['succeeded 1999', 'processing 1999']);
  await world.control('POST', 'settle', { paymentIntentId: (await intents())[1]?.id });
  await env.server.sleep(DAY);
  await eventually(async () => expect((await env.state(ref)).status).toBe('ENDED'));
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
