import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bookLateCharge } from '../../db/repositories/late-charges.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { refunds } from '../../db/schema/refunds.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { openBooks } from '../../scripts/verify/books.ts';
import { readRepairs } from '../../scripts/verify/repairs.ts';
import { paymentsIn } from '../support/payments.ts';
import { repairsOf } from '../support/repairs.ts';
import { checkoutCommand, connectDevServer, createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server);
});

afterAll(async () => {
  await world.close();
  await server.close();
});

/** As `npm run verify` shows it. */
async function counted(): Promise<Record<string, number>> {
  const { databaseUrl } = world;
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

test('a healthy life adds nothing to the counts of repairs [design §5]', async () => {
  const ref = await world.create({ createdAt: Date.now() });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  expect(await repairsOf(world)).toEqual({});
  expect(await counted()).toEqual({});
});

test('each repair is counted once, and the counts add up over sweeps [design §5]', async () => {
  const startLost = async () => {
    const { subscriptionId } = await world.createRowOnly({ createdAt: Date.now() });
    await world.db
      .update(subscriptions)
      .set({ insertedAt: sql`now() - interval '1 minute'` })
      .where(eq(subscriptions.id, subscriptionId));
  };
  await startLost();
  expect(await repairsOf(world)).toEqual({ neverStarted: 1 });
  await startLost();
  await startLost();
  expect(await repairsOf(world)).toEqual({ neverStarted: 2 });
  expect(await repairsOf(world)).toEqual({});
  expect(await counted()).toEqual({ neverStarted: 3 });
});

test('a refund that was never handed over is given back by the sweep, once, and counted [D-40]', async () => {
  const payments = paymentsIn(world);
  const paid = await payments.paid();
  const { ref } = await payments.refund(paid, 700);
  expect(await repairsOf(world)).toEqual({});
  await world.db
    .update(refunds)
    .set({ updatedAt: sql`now() - interval '2 minutes'` })
    .where(eq(refunds.id, ref.refundId));
  expect(await repairsOf(world)).toEqual({ openRefunds: 1 });
  expect(await world.payments.refund(ref)).toMatchObject({ kind: 'refunded' });
  expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 700']);
  expect(await counted()).toEqual({ neverStarted: 3, openRefunds: 1 });
});

test('a late charge goes back although its refund was not handed over, and nobody asked for it [design §4]', async () => {
  const payments = paymentsIn(world);
  const { customerId, paymentMethodId } = await payments.saved();
  const paid = await payments.payment('tokenised', { customerId, paymentMethodId });
  await world.payments.pay({ ...paid, token: null });
  const [attempt] = await world.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.intentId, paid.intentId));
  if (!attempt) throw new Error('no attempt');
  const late = await world.gateway.charge({
    key: `${attempt.gatewayKey}:second`,
    gatewayMethodId: attempt.gatewayMethodId,
    amountMinor: attempt.amountMinor,
    currency: attempt.currency,
    reference: { ...paid, subscriptionId: null, paymentMethodId },
  });
  if (late.kind !== 'succeeded') throw new Error('not charged');
  // And then the process dies, or Temporal is away, for longer than a sweep waits.
  const { gatewayChargeId } = late;
  const { refundId } = await bookLateCharge(world.db, attempt, gatewayChargeId, Date.now());
  await world.db
    .update(refunds)
    .set({ updatedAt: sql`now() - interval '2 minutes'` })
    .where(eq(refunds.id, refundId));
  expect(await repairsOf(world)).toEqual({ openRefunds: 1 });
  const ref = { merchantId: world.merchantId, refundId };
  expect(await world.payments.refund(ref)).toEqual({ kind: 'refunded' });
  expect((await payments.book(paid)).toSorted()).toEqual([
    'succeeded 5000 x1',
    'succeeded 5000 x1 back 5000',
  ]);
});
