import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { onDevServerWith } from '../support/environment.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { Shop } from '../support/shop.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** One call of an activity has time for every request of these tests. */
const test = onDevServerWith({
  runsLocally: false,
  sendBudget: { newSendsForMs: 12_000, pauseMs: 1 },
});

const fault = (env: TestEnvironment, operation: string, body: object) =>
  env.control('POST', '/control/faults', { operation, ...body });

async function renewed(env: TestEnvironment, shop: Shop, losesAnswer: object, lookups: number) {
  const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z', { cycleCount: 2 });
  await fault(env, 'charge', { fault: 'lose_answer', count: 1, ...losesAnswer });
  await fault(env, 'lookup', { fault: 'error_500', count: lookups });
  await env.advance(clock, '2027-02-10T00:00:00Z');
  const { data } = await shop.merchant.get<{ data: Record<string, unknown>[] }>(
    `/subscription/charges/${ref.subscriptionId}`,
  );
  return data.map(({ cycleNumber, status, lookups: count, sentAt }) => [
    cycleNumber,
    status,
    count,
    (sentAt as string[]).length,
  ]);
}

describe('the charges of a subscription', () => {
  test('count a lost send and three failed look-ups when the fourth finds the charge at once [D-57]', async ({
    env,
    shop,
  }) => {
    expect(await renewed(env, shop, { effect: 'done' }, 3)).toEqual([
      [1, 'SUCCESS', 0, 1],
      [2, 'SUCCESS', 4, 1],
    ]);
  });

  test('count a lost send, a failed look-up and one that found no charge when a second send charges [D-57]', async ({
    env,
    shop,
  }) => {
    expect(await renewed(env, shop, { effect: 'none' }, 1)).toEqual([
      [1, 'SUCCESS', 0, 1],
      [2, 'SUCCESS', 3, 2],
    ]);
  });
});

describe('a one-time charge', () => {
  test('counts each look-up in manual review that finds no outcome [D-57]', async ({
    env,
    payments,
  }) => {
    const { intentId, merchantId } = await payments.tokenised();
    const order = { merchantId, intentId, token: null };
    const charge = (lookups: number) =>
      env.activities.chargePayment({ ...order, nowAt: Date.now(), lookups });
    const counted = async () => {
      const [attempt] = await env.db
        .select()
        .from(paymentAttempts)
        .where(eq(paymentAttempts.intentId, intentId));
      return [attempt?.state, attempt?.lookups];
    };
    await fault(env, 'charge', { fault: 'lose_answer', effect: 'done', count: 1 });
    await fault(env, 'lookup', { fault: 'error_500', count: 1_000 });
    // So many look-ups before that this one is the last of 24 h, and may not be repeated at once.
    expect(await charge(1_000)).toEqual({ kind: 'pending', needsPerson: true });
    expect(await counted()).toEqual(['REVIEW', 1]);
    expect(await charge(1_000)).toEqual({ kind: 'pending', needsPerson: true });
    expect(await charge(1_000)).toEqual({ kind: 'pending', needsPerson: true });
    expect(await counted()).toEqual(['REVIEW', 3]);
    await env.control('DELETE', '/control/faults');
    expect(await charge(1_000)).toEqual({ kind: 'succeeded' });
    expect(await counted()).toEqual(['SUCCEEDED', 3]);
  });
});
