import { expect, vi } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import type { Shop } from '../support/shop.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Edits over HTTP during charges of the same subscription, on a real Temporal server. */

/** Creates a subscription of 19.99 USD a month, which is ACTIVE since 10 January 2027. */
async function active(env: TestEnvironment, shop: Shop) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await env.createClock(createdAt);
  const ref = await env.create({ createdAt, testClockId: clock });
  await payCheckout(env, ref);
  const { subscriptionId } = ref;
  return {
    ref,
    edit: (changes: object) =>
      shop.merchant.post<object>('/subscription/edit', { subscriptionId, ...changes }),
    goTo: (day: string) => env.advance(clock, `${day}T00:00:00Z`),
    amounts: async () => (await env.book(ref)).map(({ amountMinor }) => amountMinor),
  };
}

test('an edit that arrives during a charge changes only later charges [D-15, D-32]', async ({
  env,
  shop,
}) => {
  const subscription = await active(env, shop);
  await env.control('POST', '/control/faults', {
    operation: 'charge',
    fault: 'delay',
    delayMs: 60_000,
    count: 1,
    match: { subscriptionId: subscription.ref.subscriptionId },
  });
  const february = subscription.goTo('2027-02-10');
  await vi.waitFor(
    async () => expect((await env.state(subscription.ref)).openAttempt).not.toBeNull(),
    { timeout: 60_000, interval: 10 },
  );
  const edited = subscription.edit({
    newAmount: 9_900,
    newCycleCount: 4,
    newNextPaymentDate: Date.parse('2027-02-20T00:00:00Z'),
    interval: 'WEEK',
    intervalCount: 1,
  });
  // The gateway holds the charge until its faults are removed.
  await env.control('DELETE', '/control/faults');
  await february;
  expect(await edited).toEqual({});
  expect(await subscription.amounts()).toEqual([1_999, 1_999]);

  await subscription.goTo('2027-03-31');
  expect(await subscription.amounts()).toEqual([1_999, 1_999, 9_900, 9_900]);
  const charged = (await env.events(subscription.ref)).filter(
    (event) => event['eventType'] === 'subscription.cycle_charged',
  );
  expect(charged.map((event) => new Date(Number(event['eventTime'])).toISOString())).toEqual([
    '2027-01-10T00:00:00.000Z',
    '2027-02-10T00:00:00.000Z',
    '2027-02-20T00:00:00.000Z',
    '2027-02-27T00:00:00.000Z',
  ]);
  expect(await env.state(subscription.ref)).toMatchObject({
    status: 'ENDED',
    endReason: 'completed',
  });
});

test('each month is charged once, at the amount of its intent, when edits arrive at the same time [D-15, D-32]', async ({
  env,
  shop,
}) => {
  const subscription = await active(env, shop);
  for (const day of ['2027-02-10', '2027-03-10', '2027-04-10', '2027-05-10']) {
    await Promise.all([
      subscription.goTo(day),
      ...[2_001, 2_002, 2_003].map((newAmount) => subscription.edit({ newAmount })),
    ]);
  }
  const requested = (await env.events(subscription.ref))
    .filter((event) => event['eventType'] === 'intent.created')
    .map((event) => event['amount']);
  expect(requested).toHaveLength(5);
  expect(await subscription.amounts()).toEqual(requested);
});
