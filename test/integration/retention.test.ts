import { asc, eq, inArray, sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import {
  deleteClosedSessions,
  deleteOldEvents,
  deleteOldGatewayEvents,
} from '../../db/repositories/sweeps/retention.ts';
import { checkoutSessions, checkoutTries, setupMethods } from '../../db/schema/checkouts.ts';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { assignPositions } from '../../db/repositories/webhooks/feed.ts';
import { outboxEvents, webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { paymentIntents } from '../../db/schema/payments.ts';
import { sweepCounts } from '../../db/schema/sweeps.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { paymentsIn } from '../support/payments.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { findings } from '../support/findings.ts';
import { SECRET } from '../support/webhook-environment.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';

const DAY = 24 * 3_600_000;
const daysAgo = (days: number) => sql`now() - make_interval(days => ${days})`;

const eventsOf = (env: TestEnvironment) =>
  env.db
    .select()
    .from(outboxEvents)
    .orderBy(asc(outboxEvents.streamId), asc(outboxEvents.sequence));

test('a sweep deletes closed sessions, deliveries and event bodies after 30 days, and npm run verify reports no violation', async ({
  env,
}) => {
  const receiver = await startWebhookReceiver({ secrets: [SECRET] });
  try {
    await env.subscribe(receiver.url, SECRET);
    const paid = await env.create({ createdAt: Date.now() });
    await payCheckout(env, paid);
    const open = await env.create({ createdAt: Date.now() });
    const events = await eventsOf(env);
    await receiver.waitFor(events.length);
    const isDelivered = eq(webhookDeliveries.state, 'DELIVERED');
    await vi.waitFor(
      async () => expect(await env.db.$count(webhookDeliveries, isDelivered)).toBe(events.length),
      { timeout: 30_000 },
    );
    await env.db.update(webhookConfigs).set({ updatedAt: daysAgo(40) });
    // Both checkout sessions are old. One session is paid and has a tried card; the other session waits for its payer.
    await env.db.update(checkoutSessions).set({ insertedAt: daysAgo(31) });
    const [session] = await env.db
      .select()
      .from(checkoutSessions)
      .where(eq(checkoutSessions.subscriptionId, paid.subscriptionId));
    await env.db.insert(checkoutTries).values({
      merchantId: env.merchantId,
      sessionId: session!.id,
      key: Buffer.alloc(32, 1),
      createdAt: Date.now(),
    });
    await env.db
      .update(outboxEvents)
      .set({ insertedAt: daysAgo(29) })
      .where(eq(outboxEvents.streamId, open.subscriptionId));
    await env.db
      .update(outboxEvents)
      .set({ insertedAt: daysAgo(31) })
      .where(eq(outboxEvents.streamId, paid.subscriptionId));
    // The delivery of one old event is still pending.
    const old = events.filter(({ streamId }) => streamId === paid.subscriptionId);
    expect(old.map(({ type }) => type)).toEqual([
      'intent.created',
      'subscription.created',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
    const pending = old.at(-1)!;
    await env.db
      .update(webhookDeliveries)
      .set({ state: 'PENDING', settledAt: null, nextAttemptAt: Date.now() + DAY })
      .where(eq(webhookDeliveries.eventId, pending.id));
    expect((await findings(env)).wrong).toEqual([]);

    const report = await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
    expect(Object.values(report).every((count) => count === 0)).toBe(true);
    expect(await env.db.select().from(sweepCounts)).toEqual([]);
    const deliveries = await env.db.select().from(webhookDeliveries);
    expect(deliveries).toHaveLength(events.length - 4);
    const after = await eventsOf(env);
    expect(after).toHaveLength(events.length);
    for (const event of after) {
      const before = events.find(({ id }) => id === event.id)!;
      const isShortened = event.streamId === paid.subscriptionId && event.id !== pending.id;
      const { intentId, status } = JSON.parse(before.body) as Record<string, unknown>;
      expect(event.bodyDeletedAt === null).toBe(!isShortened);
      expect(JSON.parse(event.body)).toEqual(
        isShortened ? { intentId: intentId ?? null, status } : JSON.parse(before.body),
      );
    }
    const kept = await env.db.select().from(checkoutSessions);
    expect(kept.map(({ subscriptionId }) => subscriptionId)).toEqual([open.subscriptionId]);
    expect(await env.db.select().from(checkoutTries)).toEqual([]);
    expect((await findings(env)).wrong).toEqual([]);

    // A second sweep deletes nothing more.
    await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
    expect(await env.db.select().from(webhookDeliveries)).toEqual(deliveries);
    expect(await eventsOf(env)).toEqual(after);
    expect(await env.state(paid)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 1 });
  } finally {
    await receiver.close();
  }
});

test('an event of a gateway is deleted after 30 days once it is handled, and after 90 days in any case', async ({
  env,
}) => {
  const receivedDaysAgo = (days: number, isHandled: boolean) => {
    const receivedAt = Date.now() - days * DAY;
    const [eventId, type] = [`${days} days, ${isHandled ? 'handled' : 'open'}`, 'refund.failed'];
    const hint = { eventId, type, kind: 'refund', gatewayRefundId: 're_1', key: null } as const;
    const account = { merchantId: env.merchantId, gateway: 'sandbox' };
    const row = { ...account, eventId, type, subjectId: 're_1', hint, receivedAt };
    return { ...row, handledAt: isHandled ? receivedAt : null };
  };
  await env.db
    .insert(gatewayEvents)
    .values([
      receivedDaysAgo(29, true),
      receivedDaysAgo(31, true),
      receivedDaysAgo(31, false),
      receivedDaysAgo(91, false),
    ]);
  const before = Date.now() - 30 * DAY;
  expect(await deleteOldGatewayEvents(env.db, { before, limit: 100 })).toBe(2);
  const kept = await env.db.select().from(gatewayEvents).orderBy(gatewayEvents.receivedAt);
  expect(kept.map(({ eventId }) => eventId)).toEqual(['31 days, open', '29 days, handled']);
  expect(await deleteOldGatewayEvents(env.db, { before, limit: 100 })).toBe(0);
});

test('one deletion of closed sessions or old events covers at most `limit` records, the oldest first', async ({
  env,
}) => {
  const refs = [];
  for (let made = 0; made < 3; made += 1)
    refs.push(await env.createRowOnly({ createdAt: Date.now() }));
  const ids = refs.map(({ subscriptionId }) => subscriptionId);
  await env.db
    .update(subscriptions)
    .set({ status: 'ENDED', workflowStartedAt: Date.now() })
    .where(inArray(subscriptions.id, ids));
  for (const [index, { subscriptionId }] of refs.entries()) {
    const insertedAt = daysAgo(60 - index);
    await env.db
      .update(outboxEvents)
      .set({ insertedAt })
      .where(eq(outboxEvents.streamId, subscriptionId));
    await env.db
      .update(checkoutSessions)
      .set({ insertedAt })
      .where(eq(checkoutSessions.subscriptionId, subscriptionId));
  }
  const deletion = { before: Date.now() - 40 * DAY, limit: 2 };
  expect(await deleteClosedSessions(env.db, deletion)).toBe(2);
  const left = await env.db
    .select()
    .from(checkoutSessions)
    .where(inArray(checkoutSessions.subscriptionId, ids));
  expect(left.map(({ subscriptionId }) => subscriptionId)).toEqual([ids[2]]);
  expect(await deleteClosedSessions(env.db, deletion)).toBe(1);
  expect(await deleteClosedSessions(env.db, deletion)).toBe(0);
  await env.db.update(webhookDeliveries).set({ state: 'DROPPED', settledAt: Date.now() });
  await assignPositions(env.db, env.merchantId);
  // Each of the three subscriptions has two events.
  for (const bodies of [2, 2, 2, 0]) {
    expect((await deleteOldEvents(env.db, deletion)).bodies).toBe(bodies);
  }
});

test('the session of a hosted page is kept for a day after its payer has paid or saved a card, however old it is [D-40]', async ({
  env,
}) => {
  const payments = paymentsIn(env);
  await env.db.delete(checkoutTries);
  await env.db.delete(checkoutSessions);
  const subscription = await env.create({ createdAt: Date.now() });
  const payment = await payments.payment('hosted');
  const setup = await payments.setup();
  await env.db.update(checkoutSessions).set({ insertedAt: daysAgo(40) });
  const deletion = { before: Date.now() - 30 * DAY, limit: 10 };
  expect(await deleteClosedSessions(env.db, deletion)).toBe(0);

  await payCheckout(env, subscription);
  const paid = await payments.pay({ ...payment, token: await payments.card() });
  const saved = await env.activities.saveSetupMethod({
    merchantId: setup.merchantId,
    setupMethodId: setup.setupMethodId,
    token: await payments.card(),
    nowAt: Date.now(),
  });
  expect([paid.kind, saved.kind]).toEqual(['succeeded', 'saved']);
  expect(await deleteClosedSessions(env.db, deletion)).toBe(0);

  // More than a day later. The subscription is renewed meanwhile, so its row is new.
  await env.db
    .update(outboxEvents)
    .set({ insertedAt: daysAgo(2) })
    .where(eq(outboxEvents.streamId, subscription.subscriptionId));
  await env.db.update(subscriptions).set({ updatedAt: Date.now() });
  expect(await deleteClosedSessions(env.db, deletion)).toBe(1);
  await env.db
    .update(paymentIntents)
    .set({ updatedAt: daysAgo(2) })
    .where(eq(paymentIntents.id, payment.intentId));
  expect(await deleteClosedSessions(env.db, deletion)).toBe(1);
  await env.db.update(setupMethods).set({ completedAt: daysAgo(2) });
  expect(await deleteClosedSessions(env.db, deletion)).toBe(1);
  expect(await env.db.select().from(checkoutSessions)).toEqual([]);
});
