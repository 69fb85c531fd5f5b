import { eq, sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { subscriptions, testClocks } from '../../db/schema/subscriptions.ts';
import { openBooks } from '../../cli/verify/books.ts';
import { readRepairs } from '../../cli/verify/repairs.ts';
import { onDevServer as test } from '../support/environment.ts';
import { repairsOf } from '../support/repairs.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** The number of repairs by kind that `npm run verify` shows. */
async function counted(env: TestEnvironment): Promise<Record<string, number>> {
  const { databaseUrl } = env;
  const books = await openBooks({
    databaseUrl,
    gateway: null,
    receiverBook: null,
    clientBook: null,
  });
  try {
    const repairs = await readRepairs(books);
    return Object.fromEntries(repairs.map(({ kind, repaired }) => [kind, repaired]));
  } finally {
    await books.close();
  }
}

test('the counts of repairs grow by one for each repair over several sweeps', async ({ env }) => {
  const startLost = async () => {
    const { subscriptionId } = await env.createRowOnly({ createdAt: Date.now() });
    await env.db
      .update(subscriptions)
      .set({ insertedAt: sql`now() - interval '1 minute'` })
      .where(eq(subscriptions.id, subscriptionId));
  };
  await startLost();
  expect(await repairsOf(env)).toEqual({ neverStarted: 1 });
  await startLost();
  await startLost();
  expect(await repairsOf(env)).toEqual({ neverStarted: 2 });
  expect(await repairsOf(env)).toEqual({});
  expect(await counted(env)).toEqual({ neverStarted: 3 });
});

test('the sweep repairs a subscription that a charge of unknown outcome keeps behind its test clock only when the look-up is overdue [D-60]', async ({
  env,
}) => {
  const { ref, clock, createdAt } = await paidOnClock(env, '2027-01-01T00:00:00Z', {
    cycleCount: 2,
  });
  const before = await counted(env);
  await env.gatewayAway();
  const targetAt = Date.parse('2027-02-02T00:00:00Z');
  await env.sendClock(clock, targetAt);
  await vi.waitFor(
    async () => expect(await env.state(ref)).toMatchObject({ openAttempt: { lookups: 1 } }),
    { timeout: 30_000 },
  );
  await env.stopWorkers();

  const isRow = eq(subscriptions.id, ref.subscriptionId);
  const ago = sql`now() - interval '2 minutes'`;
  await env.db.update(testClocks).set({ sentAt: ago });
  await env.age('subscription', ref.subscriptionId);
  expect(await repairsOf(env)).toEqual({});
  await env.db.update(subscriptions).set({ wakeAt: ago }).where(isRow);
  expect(await repairsOf(env)).toEqual({ behindTheirClock: 1 });
  // The look-up of a first payment may also be overdue on a clock that has reached its target.
  const late = { updatedAt: ago, wakeAt: ago };
  await env.db.update(testClocks).set({ targetAt: createdAt });
  await env.db.update(subscriptions).set(late).where(isRow);
  expect(await repairsOf(env)).toEqual({ behindTheirClock: 1 });
  await env.db.update(testClocks).set({ targetAt });

  await env.gatewayBack();
  await env.startWorkers();
  await env.advance(clock, targetAt);
  expect(await repairsOf(env)).toEqual({});
  expect(await counted(env)).toEqual({ ...before, behindTheirClock: 2 });
  expect((await env.book(ref)).map(({ key, outcome }) => [key.slice(-2), outcome])).toEqual([
    [':1', 'succeeded'],
    [':1', 'succeeded'],
  ]);
});

test('a refund is made and counted once by the sweep when its workflow never started [D-40]', async ({
  env,
  payments,
}) => {
  const paid = await payments.paid();
  const { ref } = await payments.refund(paid, 700);
  expect(await repairsOf(env)).toEqual({});
  await env.age('refund', ref.refundId);
  expect(await repairsOf(env)).toEqual({ openRefunds: 1 });
  expect(await env.orders.execute('refund', ref)).toMatchObject({ kind: 'refunded' });
  expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 700']);
  expect(await counted(env)).toEqual({ neverStarted: 3, behindTheirClock: 2, openRefunds: 1 });
});
