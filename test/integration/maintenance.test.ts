import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { deleteWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import { isOverdue } from '../../db/repositories/sweeps/queries.ts';
import { sendTestClock } from '../../db/repositories/merchants/test-clocks.ts';
import { idempotencyKeys } from '../../db/schema/idempotency-keys.ts';
import { refunds } from '../../db/schema/refunds.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { testClocks } from '../../db/schema/test-clocks.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer } from '../support/environment.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import type { World } from '../support/world.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';

const HOUR = 3_600_000;

const test = onDevServer();

const sweep = (world: World) => world.activities.sweep({ nowAt: Date.now(), lookBackMs: HOUR });

const NOTHING = {
  neverStarted: 0,
  lost: 0,
  overdue: 0,
  behindTheirClock: 0,
  withdrawn: 0,
  openPayments: 0,
  openRefunds: 0,
  decidedReviews: 0,
  stalledStreams: 0,
  failed: 0,
};

const handleOf = (world: World, ref: SubscriptionRef) =>
  world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));

const isRunning = async (world: World, ref: SubscriptionRef) =>
  (await handleOf(world, ref).describe()).status.name === 'RUNNING';

async function change(world: World, ref: SubscriptionRef, set: object): Promise<void> {
  await world.db.update(subscriptions).set(set).where(eq(subscriptions.id, ref.subscriptionId));
}

/** In the future, so that the row counts as new however slow the test is. */
const justNow = sql`now() + interval '1 minute'`;
const longAgo = sql`now() - interval '10 minutes'`;

describe('a sweep', () => {
  test('repairs nothing when nothing is wrong', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now() });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    expect(await sweep(world)).toEqual(NOTHING);
  });

  test('starts the workflow of a subscription that has none', async ({ world }) => {
    const ref = await world.createRowOnly({ createdAt: Date.now() });
    await change(world, ref, { insertedAt: justNow });
    expect(await sweep(world)).toEqual(NOTHING);
    await change(world, ref, { insertedAt: longAgo });
    expect(await sweep(world)).toEqual({ ...NOTHING, neverStarted: 1 });
    expect(await isRunning(world, ref)).toBe(true);
    expect(await sweep(world)).toEqual(NOTHING);
  });

  test('starts a workflow again from its row when it was terminated', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now() });
    await handleOf(world, ref).terminate('terminated by an operator');
    await vi.waitFor(async () => expect((await sweep(world)).lost).toBe(1), {
      timeout: 20_000,
      interval: 200,
    });
    expect(await isRunning(world, ref)).toBe(true);
    expect(await sweep(world)).toEqual(NOTHING);
  });

  test('wakes a subscription whose next step is overdue', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now() });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    // The workflow is terminated outside the sweep's look-back of 0 ms, and a cycle is due.
    await handleOf(world, ref).terminate('lost');
    const state = await world.state(ref);
    const anchorAt = Number(state.anchorAt) - 40 * 24 * HOUR;
    await change(world, ref, {
      state: { ...state, anchorAt },
      wakeAt: longAgo,
      updatedAt: longAgo,
    });
    const { overdue } = await world.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
    expect(overdue).toBe(1);
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), 20_000);
    expect(await world.book(ref)).toHaveLength(2);
  });

  test('leaves a subscription alone that was served after the sweep had found it', async ({
    world,
  }) => {
    const ref = await world.create({ createdAt: Date.now() });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    await change(world, ref, { wakeAt: longAgo, updatedAt: longAgo });
    expect(await isOverdue(world.db, ref)).toBe(true);
    const historyLength = async () => (await handleOf(world, ref).describe()).historyLength;
    const before = await historyLength();

    const isServed = async () => {
      await change(world, ref, { updatedAt: sql`now()` });
      return isOverdue(world.db, ref);
    };
    expect(await world.workflows.recheckUnlessBusy(ref, isServed)).toBe(false);
    expect(await historyLength()).toBe(before);
    expect(await world.workflows.recheckUnlessBusy(ref, async () => true)).toBe(true);
    expect(await historyLength()).toBeGreaterThan(before);
    await change(world, ref, { wakeAt: null });
  });

  test('sends a subscription the target of its test clock again when it lags behind [D-60]', async ({
    world,
  }) => {
    const createdAt = Date.parse('2027-01-10T00:00:00Z');
    const clock = await world.createClock(createdAt);
    const ref = await world.create({ createdAt, testClockId: clock });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    const targetAt = Date.parse('2027-02-11T00:00:00Z');
    // The target is committed without a signal to the workflow.
    const { merchantId } = world;
    await sendTestClock(world.db, { merchantId, id: clock, targetAt, createdAt }, targetAt);
    await change(world, ref, { updatedAt: longAgo });
    // The signal may still be in flight.
    expect(await sweep(world)).toEqual(NOTHING);
    await world.db.update(testClocks).set({ sentAt: longAgo });
    expect(await sweep(world)).toEqual({ ...NOTHING, behindTheirClock: 1 });
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), 20_000);
    expect(await world.book(ref)).toHaveLength(2);
  });

  test('wakes the queue of an endpoint whose deliveries are overdue [D-54]', async ({ world }) => {
    const receiver = await startWebhookReceiver({ secrets: ['a-secret-of-the-merchant'] });
    const configId = await world.subscribe(receiver.url, 'a-secret-of-the-merchant');
    // The events are committed, and no process delivers them.
    const ref = await world.createRowOnly({ createdAt: Date.now() });
    await change(world, ref, { insertedAt: justNow });
    await world.db
      .update(webhookDeliveries)
      .set({ nextAttemptAt: Date.now() - 60_000 })
      .where(eq(webhookDeliveries.streamId, ref.subscriptionId));
    expect(await sweep(world)).toEqual({ ...NOTHING, stalledStreams: 1 });
    await receiver.waitFor(2);
    expect(receiver.received.map(({ event }) => [event.sequence, event.eventType])).toEqual([
      [1, 'intent.created'],
      [2, 'subscription.created'],
    ]);
    await deleteWebhookConfig(world.db, { merchantId: world.merchantId, configId, at: Date.now() });
    await receiver.close();
    expect(await world.workflows.start(ref)).toBe(true);
  });

  test('wakes the queue when a crashed worker’s lease on deliveries expired [D-54]', async ({
    world,
  }) => {
    const receiver = await startWebhookReceiver({ secrets: ['a-secret-of-the-merchant'] });
    const configId = await world.subscribe(receiver.url, 'a-secret-of-the-merchant');
    const ref = await world.createRowOnly({ createdAt: Date.now() });
    await change(world, ref, { insertedAt: justNow });
    const claim = (claimedUntil: number) =>
      world.db
        .update(webhookDeliveries)
        .set({ nextAttemptAt: Date.now() - 60_000, claimedUntil })
        .where(eq(webhookDeliveries.streamId, ref.subscriptionId));
    await claim(Date.now() + 40_000);
    expect(await sweep(world)).toEqual(NOTHING);
    expect(receiver.received).toEqual([]);
    await claim(Date.now() - 1);
    expect(await sweep(world)).toEqual({ ...NOTHING, stalledStreams: 1 });
    await receiver.waitFor(2);
    expect(receiver.received.map(({ event }) => [event.sequence, event.eventType])).toEqual([
      [1, 'intent.created'],
      [2, 'subscription.created'],
    ]);
    await deleteWebhookConfig(world.db, { merchantId: world.merchantId, configId, at: Date.now() });
    await receiver.close();
    expect(await world.workflows.start(ref)).toBe(true);
  });

  test('voids an unsent refund without an idempotency key when its caller crashed [D-17]', async ({
    world,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid, 700);
    const { refundId } = ref;
    // The request had no idempotency key, so no client can repeat it.
    await world.db
      .delete(idempotencyKeys)
      .where(eq(idempotencyKeys.commandId, `cmd_${refundId.slice(3)}`));
    expect(await sweep(world)).toEqual(NOTHING);
    await world.db.update(refunds).set({ updatedAt: longAgo }).where(eq(refunds.id, refundId));
    expect(await sweep(world)).toEqual({ ...NOTHING, withdrawn: 1 });
    expect(await sweep(world)).toEqual(NOTHING);
    expect(await world.payments.refund(ref)).toEqual({
      kind: 'refused',
      message: 'It was withdrawn before it was sent.',
    });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1']);
  });

  test('makes the other repairs, and counts a failure, when one repair fails', async ({
    world,
  }) => {
    const unstartable = await world.createRowOnly({ createdAt: Date.now() });
    const other = await world.createRowOnly({ createdAt: Date.now() });
    const state = await world.state(unstartable);
    // Its workflow cannot start: the payload exceeds the Temporal server's limit.
    const log = [{ at: 0, what: 'x'.repeat(3_000_000), why: '' }];
    await change(world, unstartable, { insertedAt: longAgo, state: { ...state, log } });
    await change(world, other, { insertedAt: longAgo });
    const report = await sweep(world);
    expect({ neverStarted: report.neverStarted, failed: report.failed }).toEqual({
      neverStarted: 1,
      failed: 1,
    });
    expect(await isRunning(world, other)).toBe(true);
    await change(world, unstartable, { state });
    await sweep(world);
    expect(await isRunning(world, unstartable)).toBe(true);
  });
});

describe('an Idempotency-Key', () => {
  test('is deleted when its 45 days are over, and not before [D-17]', async ({ world }) => {
    const row = (key: string, expiresAt: number) => ({
      merchantId: world.merchantId,
      route: 'POST /customer/create',
      key,
      fingerprint: Buffer.alloc(32),
      state: 'DONE' as const,
      owner: randomUUID(),
      lockedUntil: 0,
      commandId: key,
      createdAt: 0,
      expiresAt,
    });
    const nowAt = Date.now();
    await world.db.insert(idempotencyKeys).values([row('over', nowAt - 1), row('kept', nowAt)]);
    await world.activities.sweep({ nowAt, lookBackMs: 0 });
    const left = await world.db
      .select({ key: idempotencyKeys.key })
      .from(idempotencyKeys)
      .where(eq(idempotencyKeys.route, 'POST /customer/create'));
    expect(left).toEqual([{ key: 'kept' }]);
  });
});
