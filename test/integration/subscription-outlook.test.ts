import { expect } from 'vitest';
import { onDevServer as test } from '../support/environment.ts';
import type { Shop } from '../support/shop.ts';
import { recordAndLose } from '../support/lost-task.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** The next charges and the timeline, from the API beside a real Temporal server. */

const JAN_10 = Date.parse('2027-01-10T00:00:00Z');

/** Creates a subscription of three cycles that is ACTIVE since 10 January 2027, with one cycle paid. */
async function active(env: TestEnvironment, shop: Shop) {
  const clock = await env.createClock(JAN_10);
  const ref = await env.create({
    createdAt: JAN_10,
    testClockId: clock,
    terms: { cycleCount: 3 },
  });
  await payCheckout(env, ref);
  const { subscriptionId } = ref;
  return {
    ref,
    clock,
    subscriptionId,
    upcoming: () => shop.merchant.get<object>(`/subscription/upcoming/${subscriptionId}`),
    timeline: () => shop.merchant.get<object>(`/subscription/timeline/${subscriptionId}`),
  };
}

const CHARGES = {
  data: [
    { date: Date.parse('2027-02-10T00:00:00Z'), cycleNumber: 2, amount: 1_999, currency: 'USD' },
    { date: Date.parse('2027-03-10T00:00:00Z'), cycleNumber: 3, amount: 1_999, currency: 'USD' },
  ],
};
const HISTORY = {
  data: [
    { date: JAN_10, what: 'created', why: 'the merchant asked for it', actor: 'merchant' },
    {
      date: JAN_10,
      what: 'cycle 1 paid, 19.99 USD',
      why: 'the payer paid in the checkout (attempt 1)',
      actor: 'payer',
    },
  ],
};

test('the next charges and the timeline show an edit as soon as the edit is answered [D-§7]', async ({
  env,
  shop,
}) => {
  const subscription = await active(env, shop);
  expect(await subscription.upcoming()).toEqual(CHARGES);
  expect(await subscription.timeline()).toEqual(HISTORY);
  const { subscriptionId } = subscription;
  await shop.merchant.post('/subscription/edit', { subscriptionId, newAmount: 2_500 });
  expect(await subscription.upcoming()).toEqual({
    data: CHARGES.data.map((charge) => ({ ...charge, amount: 2_500 })),
  });
  expect(await subscription.timeline()).toEqual({
    data: [
      ...HISTORY.data,
      {
        date: JAN_10,
        what: 'edited: amount 2500',
        why: 'the merchant asked for it',
        actor: 'merchant',
      },
    ],
  });
});

test('the next charges and the timeline are those of the row when no worker runs and the run is older than the row [D-§7, D-§8]', async ({
  env,
  shop,
}) => {
  const subscription = await active(env, shop);
  await recordAndLose(env, subscription.ref, { kind: 'edit', newAmountMinor: 2_500 }, JAN_10);
  await env.stopWorkers();
  try {
    expect(await subscription.upcoming()).toEqual({
      data: CHARGES.data.map((charge) => ({ ...charge, amount: 2_500 })),
    });
    expect(await subscription.timeline()).toEqual({
      data: [
        ...HISTORY.data,
        {
          date: JAN_10,
          what: 'edited: amount 2500',
          why: 'the merchant asked for it',
          actor: 'merchant',
        },
      ],
    });
  } finally {
    await env.startWorkers();
  }
});

test('the next charges and the timeline come from the row when there is no workflow [D-§7]', async ({
  env,
  shop,
}) => {
  const { subscriptionId } = await env.createRowOnly({ createdAt: JAN_10 });
  expect(await shop.merchant.get(`/subscription/timeline/${subscriptionId}`)).toEqual({
    data: HISTORY.data.slice(0, 1),
  });
  expect(await shop.merchant.get(`/subscription/upcoming/${subscriptionId}`)).toEqual({ data: [] });
});
