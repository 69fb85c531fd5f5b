import { expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import type { Shop } from '../support/shop.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Edits over HTTP during charges of the same subscription, on a real Temporal server. */

/** Creates a subscription of 19.99 USD a month, which is ACTIVE since 10 January 2027. */
async function active(env: TestEnvironment, shop: Shop) {
  const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z');
  const { subscriptionId } = ref;
  return {
    ref,
    edit: (changes: object) =>
      shop.merchant.post<object>('/subscription/edit', { subscriptionId, ...changes }),
    goTo: (day: string) => env.advance(clock, `${day}T00:00:00Z`),
    amounts: async () => (await env.book(ref)).map(({ amountMinor }) => amountMinor),
  };
}

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
