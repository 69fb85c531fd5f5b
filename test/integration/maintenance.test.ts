import { randomBytes, randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { Client } from '@temporalio/client';
import type { WorkflowClientInterceptor } from '@temporalio/client';
import { describe, expect } from 'vitest';
import { insertDeclaration } from '../../db/repositories/customers/declarations.ts';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { declarations } from '../../db/schema/declarations.ts';
import { newId } from '../../domain/ids.ts';
import { deleteWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions/row.ts';
import { claimKey } from '../../db/repositories/merchants/idempotency-keys.ts';
import { forgetExpiredKeys, isOverdue } from '../../db/repositories/sweeps/queries.ts';
import { sendTestClock } from '../../db/repositories/merchants/test-clocks.ts';
import { idempotencyKeys } from '../../db/schema/merchants.ts';
import { subscriptionEntries, subscriptions, testClocks } from '../../db/schema/subscriptions.ts';
import { webhookDeliveries } from '../../db/schema/webhooks.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import { paidOnClock, payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';

const HOUR = 3_600_000;

const sweep = (env: TestEnvironment) =>
  env.activities.sweep({ nowAt: Date.now(), lookBackMs: HOUR });

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
  gatewayEvents: 0,
  declarations: 0,
  failed: 0,
};

const handleOf = (env: TestEnvironment, ref: SubscriptionRef) =>
  env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));

const isRunning = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await handleOf(env, ref).describe()).status.name === 'RUNNING';

const isOf = (ref: SubscriptionRef) => eq(subscriptions.id, ref.subscriptionId);

async function change(env: TestEnvironment, ref: SubscriptionRef, set: object): Promise<void> {
  await env.db.update(subscriptions).set(set).where(eq(subscriptions.id, ref.subscriptionId));
}

/** A time in the future, so that the row counts as new however slow the test is. */
const justNow = sql`now() + interval '1 minute'`;
const longAgo = sql`now() - interval '10 minutes'`;

describe('a sweep', () => {
  test('repairs nothing when nothing is wrong', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    expect(await sweep(env)).toEqual(NOTHING);
  });

  test('handles a declaration that nobody has handled for a minute [D-62]', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    await changeSettings(env.db, env.merchantId, { declarations: 'execute' });
    const [row] = await env.db.select().from(subscriptions).where(isOf(ref));
    const id = await insertDeclaration(env.db, {
      merchantId: env.merchantId,
      id: newId('dcl', Date.now(), randomBytes),
      tokenHash: randomBytes(32),
      kind: 'cancellation',
      name: 'Ada Example',
      email: String(row?.customerDetails.email),
      reference: ref.subscriptionId,
      reason: null,
      endOn: null,
      locale: 'en',
      createdAt: Date.now(),
    });
    expect(await sweep(env)).toEqual(NOTHING);
    const createdAt = Date.now() - 61_000;
    // What was paid after the declaration would be left to the merchant.
    const isEntryOf = eq(subscriptionEntries.subscriptionId, ref.subscriptionId);
    await env.db.update(subscriptionEntries).set({ recordedAt: 0 }).where(isEntryOf);
    await env.db.update(declarations).set({ createdAt }).where(eq(declarations.id, id));
    expect(await sweep(env)).toEqual({ ...NOTHING, declarations: 1 });
    expect(await sweep(env)).toEqual(NOTHING);
    const rows = await env.db.select().from(declarations).where(eq(declarations.id, id));
    expect(rows).toMatchObject([{ outcome: 'executed', subscriptionId: ref.subscriptionId }]);
    const [ended] = await env.db.select().from(subscriptions).where(isOf(ref));
    expect(ended?.state).toMatchObject({ cancelAtPeriodEnd: true, latest: { actor: 'payer' } });
    await changeSettings(env.db, env.merchantId, { declarations: 'tell' });
  });

  test('starts the workflow of a subscription that has none', async ({ env }) => {
    const ref = await env.createRowOnly({ createdAt: Date.now() });
    await change(env, ref, { insertedAt: justNow });
    expect(await sweep(env)).toEqual(NOTHING);
    await change(env, ref, { insertedAt: longAgo });
    expect(await sweep(env)).toEqual({ ...NOTHING, neverStarted: 1 });
    expect(await isRunning(env, ref)).toBe(true);
    expect(await sweep(env)).toEqual(NOTHING);
  });

  test('starts a terminated workflow again from the subscription’s row', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await handleOf(env, ref).terminate('terminated by an operator');
    await expect.poll(async () => (await sweep(env)).lost).toBe(1);
    expect(await isRunning(env, ref)).toBe(true);
    expect(await sweep(env)).toEqual(NOTHING);
  });

  test('does not recheck a subscription whose row changed after the sweep had found it', async ({
    env,
  }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    await change(env, ref, { wakeAt: longAgo, updatedAt: longAgo });
    expect(await isOverdue(env.db, ref)).toBe(true);
    const signals: string[] = [];
    const signal: WorkflowClientInterceptor['signal'] = (input, next) => {
      signals.push(input.signalName);
      return next(input);
    };
    const workflows = createSubscriptionWorkflows({
      ...env,
      client: new Client({
        connection: env.client.connection,
        interceptors: { workflow: [{ signal }] },
      }),
      rows: subscriptionRows(env.db),
    });

    const isServed = async () => {
      await change(env, ref, { updatedAt: sql`now()` });
      return isOverdue(env.db, ref);
    };
    expect(await workflows.recheckUnlessBusy(ref, isServed)).toBe(false);
    expect(signals).toEqual([]);
    // A workflow task may still run.
    await expect.poll(() => workflows.recheckUnlessBusy(ref, async () => true)).toBe(true);
    expect(signals).toEqual(['recheck']);
    await change(env, ref, { wakeAt: null });
  });

  test('sends the target of a test clock again to a subscription that lags behind [D-60]', async ({
    env,
  }) => {
    const { ref, clock, createdAt } = await paidOnClock(env, '2027-01-10T00:00:00Z');
    const targetAt = Date.parse('2027-02-11T00:00:00Z');
    // The target is committed without a signal to the workflow.
    const { merchantId } = env;
    await sendTestClock(env.db, { merchantId, id: clock, targetAt, createdAt }, targetAt);
    await change(env, ref, { updatedAt: longAgo });
    // The target was sent just now, so its signal may still be in flight.
    expect(await sweep(env)).toEqual(NOTHING);
    await env.db.update(testClocks).set({ sentAt: longAgo });
    expect(await sweep(env)).toEqual({ ...NOTHING, behindTheirClock: 1 });
    await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(2);
    expect(await env.book(ref)).toHaveLength(2);
  });

  test('wakes the queue of an endpoint whose deliveries are overdue [D-54]', async ({ env }) => {
    const receiver = await startWebhookReceiver({ secrets: ['a-secret-of-the-merchant'] });
    const configId = await env.subscribe(receiver.url, 'a-secret-of-the-merchant');
    // The events are committed, and no process delivers them.
    const ref = await env.createRowOnly({ createdAt: Date.now() });
    await change(env, ref, { insertedAt: justNow });
    await env.db
      .update(webhookDeliveries)
      .set({ nextAttemptAt: Date.now() - 60_000 })
      .where(eq(webhookDeliveries.streamId, ref.subscriptionId));
    expect(await sweep(env)).toEqual({ ...NOTHING, stalledStreams: 1 });
    await receiver.waitFor(2);
    expect(receiver.received.map(({ event }) => [event.sequence, event.eventType])).toEqual([
      [1, 'intent.created'],
      [2, 'subscription.created'],
    ]);
    await deleteWebhookConfig(env.db, { merchantId: env.merchantId, configId, at: Date.now() });
    await receiver.close();
    await env.confirmStart(ref);
  });

  test('makes the other repairs and counts the failure when one repair fails', async ({ env }) => {
    const unstartable = await env.createRowOnly({ createdAt: Date.now() });
    const other = await env.createRowOnly({ createdAt: Date.now() });
    const state = await env.state(unstartable);
    // This workflow cannot start, because its payload exceeds the Temporal server's limit.
    const padded = { ...state, padding: 'x'.repeat(3_000_000) };
    await change(env, unstartable, { insertedAt: longAgo, state: padded });
    await change(env, other, { insertedAt: longAgo });
    const report = await sweep(env);
    expect({ neverStarted: report.neverStarted, failed: report.failed }).toEqual({
      neverStarted: 1,
      failed: 1,
    });
    expect(await isRunning(env, other)).toBe(true);
    await change(env, unstartable, { state });
    await sweep(env);
    expect(await isRunning(env, unstartable)).toBe(true);
  });
});

describe('an Idempotency-Key', () => {
  test('is deleted by the sweep only after its expiry [D-17]', async ({ env }) => {
    const row = (key: string, expiresAt: number) => ({
      merchantId: env.merchantId,
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
    await env.db.insert(idempotencyKeys).values([row('over', nowAt - 1), row('kept', nowAt)]);
    await env.activities.sweep({ nowAt, lookBackMs: 0 });
    const left = await env.db
      .select({ key: idempotencyKeys.key })
      .from(idempotencyKeys)
      .where(eq(idempotencyKeys.route, 'POST /customer/create'));
    expect(left).toEqual([{ key: 'kept' }]);
  });

  test('is kept by the sweep, which deletes the others, while a request claims it again after its expiry [D-17]', async ({
    env,
  }) => {
    const { db, merchantId } = env;
    const nowAt = Date.now();
    const use = (key: string) => ({
      merchantId,
      route: 'POST /refund',
      key,
      fingerprint: Buffer.alloc(32),
    });
    const keys = () =>
      db
        .select({ key: idempotencyKeys.key, commandId: idempotencyKeys.commandId })
        .from(idempotencyKeys)
        .where(eq(idempotencyKeys.route, 'POST /refund'));
    for (const key of ['claimed', 'over']) {
      await claimKey(db, use(key), `cmd_of_${key}`, nowAt - 46 * 24 * HOUR);
    }

    await db.transaction(async (tx) => {
      await claimKey(tx, use('claimed'), 'cmd_again', nowAt);
      await forgetExpiredKeys(db, nowAt, 10);
      expect(await keys()).toEqual([{ key: 'claimed', commandId: 'cmd_of_claimed' }]);
    });
    expect(await keys()).toEqual([{ key: 'claimed', commandId: 'cmd_again' }]);
    await forgetExpiredKeys(db, nowAt, 10);
    expect(await keys()).toEqual([{ key: 'claimed', commandId: 'cmd_again' }]);
  });
});
