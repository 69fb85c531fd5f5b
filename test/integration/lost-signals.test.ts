import { and, eq, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { createPaymentActivities } from '../../activities/payments.ts';
import { bookLateCharge } from '../../db/repositories/payments/late-charges.ts';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import type { Decision } from '../../db/repositories/payments/reviews.ts';
import { paymentAttempts } from '../../db/schema/payment-attempts.ts';
import { paymentMethods } from '../../db/schema/payment-methods.ts';
import { paymentReviews } from '../../db/schema/payment-reviews.ts';
import { refunds } from '../../db/schema/refunds.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { sweepCounts } from '../../db/schema/sweep-counts.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import {
  lateChargeWorkflowId,
  paymentWorkflowId,
  poke,
  refundWorkflowId,
} from '../../workflows/one-off-orders/messages.ts';
import { stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { webhookEndpointWorkflowId } from '../../workflows/webhook-endpoint/messages.ts';
import { onDevServer } from '../support/environment.ts';
import type { Payments } from '../support/payments.ts';
import { repairsOf } from '../support/repairs.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import type { World } from '../support/world.ts';

/**
 * A process changes a row and crashes before it signals the row's sleeping workflow. A sweep must find
 * each such row once, and nothing may be charged twice.
 */

const DAY = 24 * 3_600_000;
const SOON = { timeout: 20_000, interval: 50 };

const test = onDevServer();

const minutesAgo = (minutes: number) => sql`now() - ${minutes} * interval '1 minute'`;

async function counts(world: World): Promise<Record<string, number>> {
  const rows = await world.db.select().from(sweepCounts);
  return Object.fromEntries(rows.map(({ kind, repaired }) => [kind, repaired]));
}

/** The repairs that one sweep reports; they must equal the growth of the stored counts. */
async function sweep(world: World): Promise<Record<string, number>> {
  const before = await counts(world);
  const repaired = await repairsOf(world);
  const increases = Object.entries(await counts(world))
    .map(([kind, count]): [string, number] => [kind, count - (before[kind] ?? 0)])
    .filter(([, count]) => count > 0);
  expect(Object.fromEntries(increases)).toEqual(repaired);
  return repaired;
}

const subscriptionHandle = (world: World, { subscriptionId }: SubscriptionRef) =>
  world.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

const statusOf = async (world: World, workflowId: string) =>
  (await world.client.workflow.getHandle(workflowId).describe()).status.name;

const charges = async (world: World, ref: SubscriptionRef) =>
  (await world.book(ref)).map(
    ({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`,
  );

const eventTypes = async (world: World, ref: SubscriptionRef) =>
  (await world.events(ref)).map((event) => event['eventType']);

const attemptOf = async (world: World, intentId: string) => {
  const [attempt] = await world.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.intentId, intentId));
  if (!attempt) throw new Error(`no attempt of ${intentId}`);
  return attempt;
};

/** Charges an attempt's amount at the gateway, outside the attempt's own call. */
async function chargeOutside(
  world: World,
  attempt: Awaited<ReturnType<typeof attemptOf>>,
  key: string,
) {
  const { intentId, paymentMethodId, gatewayMethodId, amountMinor, currency } = attempt;
  const { merchantId } = world;
  const reference = { merchantId, intentId, subscriptionId: null, paymentMethodId };
  const charge = { key, gatewayMethodId, amountMinor, currency, reference };
  const outcome = await world.gateway.charge(charge);
  if (outcome.kind !== 'succeeded') throw new Error(`not charged: ${outcome.kind}`);
  return outcome.gatewayChargeId;
}

const SUBSCRIBED = [
  'intent.created',
  'subscription.created',
  'intent.success',
  'subscription.cycle_charged',
  'subscription.active',
];
const RENEWED = ['intent.created', 'intent.success', 'subscription.cycle_charged'];

test('the sweep charges a due cycle once when its workflow missed a signal [D-40]', async ({
  world,
}) => {
  const ref = await world.create({ createdAt: Date.now() });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const state = await world.state(ref);
  const version = state.version + 1;
  const anchorAt = Number(state.anchorAt) - 40 * DAY;
  await world.db
    .update(subscriptions)
    .set({
      state: { ...state, version, anchorAt },
      version,
      wakeAt: minutesAgo(2),
      updatedAt: minutesAgo(2),
    })
    .where(eq(subscriptions.id, ref.subscriptionId));
  expect(await subscriptionHandle(world, ref).query(stateQuery)).toMatchObject({
    version: state.version,
    cyclesCharged: 1,
  });

  expect(await sweep(world)).toEqual({ overdue: 1 });
  await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), SOON);
  expect(await charges(world, ref)).toEqual(['succeeded 1999 x1', 'succeeded 1999 x1']);
  expect(await eventTypes(world, ref)).toEqual([...SUBSCRIBED, ...RENEWED]);

  expect(await sweep(world)).toEqual({});
  expect(await statusOf(world, subscriptionWorkflowId(ref.subscriptionId))).toBe('RUNNING');
  expect(await charges(world, ref)).toHaveLength(2);
});

test('the sweep refunds a late charge when the subscription’s workflow missed it', async ({
  world,
  payments,
}) => {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await world.createClock(createdAt);
  const ref = await world.create({ createdAt, testClockId: clock, terms: { cycleCount: 2 } });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const [{ intentId }] = (await world.events(ref)) as [{ intentId: string }];
  const attempt = await attemptOf(world, intentId);
  const gatewayChargeId = await chargeOutside(world, attempt, `${attempt.gatewayKey}:late`);
  const { refundId } = await bookLateCharge(world.db, attempt, gatewayChargeId, Date.now());
  await world.db
    .update(refunds)
    .set({ updatedAt: minutesAgo(2) })
    .where(eq(refunds.id, refundId));

  expect(await sweep(world)).toEqual({ openRefunds: 1 });
  const refunding = world.client.workflow.getHandle(refundWorkflowId(refundId));
  expect(await refunding.result()).toMatchObject({ outcome: { kind: 'refunded' } });
  expect((await payments.book({ ...ref, intentId })).toSorted()).toEqual([
    'succeeded 1999 x1',
    'succeeded 1999 x1 back 1999',
  ]);

  // The workflow has not read the row since; it must read the row before it charges the next cycle.
  await world.advance(clock, '2027-02-10T00:00:00Z');
  expect(await charges(world, ref)).toEqual(['succeeded 1999 x1', 'succeeded 1999 x1']);
  expect((await world.state(ref)).log.map(({ what }) => what)).toContain(
    'a late charge came to light, 19.99 USD',
  );
  expect(await sweep(world)).toEqual({});
});

const BY_ADA = { code: null, by: 'Ada', note: 'asked the gateway on the phone' };

/** Records a decision without a signal to the workflow; a minute passes. */
async function decide(world: World, id: string, decision: Pick<Decision, 'outcome' | 'gatewayId'>) {
  expect(await decideReview(world.db, id, { ...BY_ADA, ...decision })).toMatchObject({ ok: true });
  await passMinute(world, id);
}

const passMinute = (world: World, id: string) =>
  world.db
    .update(paymentReviews)
    .set({ updatedAt: minutesAgo(2) })
    .where(eq(paymentReviews.subjectId, id));

/** A payment in manual review, because the gateway rejected the request. */
async function paymentInReview(world: World, payments: Payments) {
  const saved = await payments.saved();
  const setMethod = (gatewayMethodId: string) =>
    world.db
      .update(paymentMethods)
      .set({ gatewayMethodId })
      .where(eq(paymentMethods.id, saved.paymentMethodId));
  const [method] = await world.db
    .select()
    .from(paymentMethods)
    .where(eq(paymentMethods.id, saved.paymentMethodId));
  await setMethod('');
  const ref = await payments.payment('tokenised', saved);
  await world.payments.resumePayment(ref);
  await vi.waitFor(async () => expect(await payments.attempts(ref)).toEqual(['1 REVIEW']), SOON);
  await setMethod(method?.gatewayMethodId ?? '');
  const attempt = await attemptOf(world, ref.intentId);
  const gatewayMethodId = method?.gatewayMethodId ?? '';
  return { ref, attempt: { ...attempt, gatewayMethodId } };
}

test('the sweep books a payment once when a review found it paid and no signal was sent', async ({
  world,
  payments,
}) => {
  const { ref, attempt } = await paymentInReview(world, payments);
  const gatewayId = await chargeOutside(world, attempt, `${attempt.gatewayKey}:by-phone`);
  await decide(world, attempt.id, { outcome: 'paid', gatewayId });
  expect(await payments.attempts(ref)).toEqual(['1 REVIEW']);
  expect(await statusOf(world, paymentWorkflowId(ref.intentId))).toBe('RUNNING');

  expect(await sweep(world)).toEqual({ decidedReviews: 1 });
  const paying = world.client.workflow.getHandle(paymentWorkflowId(ref.intentId));
  expect(await paying.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
  expect(await payments.attempts(ref)).toEqual(['1 SUCCEEDED']);
  expect(await payments.story(ref.intentId)).toEqual([
    'intent.created CREATED',
    'intent.success SUCCESS',
  ]);

  await passMinute(world, attempt.id);
  expect(await sweep(world)).toEqual({});
  expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  expect(await payments.story(ref.intentId)).toHaveLength(2);
});

test('the sweep books a decline and starts a late-charge watch when a review found no charge', async ({
  world,
  payments,
}) => {
  const { ref, attempt } = await paymentInReview(world, payments);
  await decide(world, attempt.id, { outcome: 'not_charged', gatewayId: null });

  expect(await sweep(world)).toEqual({ decidedReviews: 1 });
  const paying = world.client.workflow.getHandle(paymentWorkflowId(ref.intentId));
  expect(await paying.result()).toMatchObject({ outcome: { kind: 'declined' } });
  const watch = world.client.workflow.getHandle(lateChargeWorkflowId(attempt.id));
  expect((await watch.describe()).status.name).toBe('RUNNING');
  await passMinute(world, attempt.id);
  expect(await sweep(world)).toEqual({});
  // The watch is terminated; the next sweep starts it again.
  await watch.terminate('lost');
  await passMinute(world, attempt.id);
  expect(await sweep(world)).toEqual({ decidedReviews: 1 });
  await passMinute(world, attempt.id);
  expect(await sweep(world)).toEqual({});

  await chargeOutside(world, attempt, attempt.gatewayKey);
  await watch.signal(poke);
  expect(await watch.result()).toMatchObject({ outcome: { kind: 'found' } });
  await vi.waitFor(
    async () => expect(await payments.book(ref)).toEqual(['succeeded 5000 x1 back 5000']),
    SOON,
  );
  expect(await payments.attempts(ref)).toEqual(['1 DECLINED']);
  await passMinute(world, attempt.id);
  expect(await sweep(world)).toEqual({});
});

test('the sweep books a refund once when a review found it made and no signal was sent', async ({
  world,
  payments,
}) => {
  const paid = await payments.paid();
  const { ref } = await payments.refund(paid, 1_200);
  // First sent 366 days ago: the gateway does not honour its key any more.
  await world.db
    .update(refunds)
    .set({ state: 'UNKNOWN', firstSentAt: sql`now() - interval '366 days'` })
    .where(eq(refunds.id, ref.refundId));
  await world.payments.resumeRefund(ref);
  await vi.waitFor(async () => expect((await payments.refundRow(ref)).state).toBe('REVIEW'), SOON);
  await decide(world, ref.refundId, { outcome: 'refunded', gatewayId: 're_by_hand' });

  expect(await sweep(world)).toEqual({ decidedReviews: 1 });
  const refunding = world.client.workflow.getHandle(refundWorkflowId(ref.refundId));
  expect(await refunding.result()).toMatchObject({ outcome: { kind: 'refunded' } });
  const expectedEvents = [
    'intent.created CREATED',
    'intent.success SUCCESS',
    'intent.refunded PARTIALLY_REFUNDED',
  ];
  expect(await payments.story(paid.intentId)).toEqual(expectedEvents);

  await passMinute(world, ref.refundId);
  expect(await sweep(world)).toEqual({});
  expect(await payments.intent(paid)).toMatchObject({ refundedMinor: 1_200 });
  expect(await payments.book(paid)).toEqual(['succeeded 5000 x1']);
  expect(await payments.story(paid.intentId)).toEqual(expectedEvents);
});

test('the sweep wakes an endpoint queue once when the signal for a new event was lost [D-54]', async ({
  world,
  payments,
}) => {
  const secret = 'whsec_YWxpdmU=';
  const receiver = await startWebhookReceiver({ secrets: [secret] });
  const received = () =>
    receiver.received.map(({ event }) => `${event.sequence} ${event.eventType}`);
  const configId = await world.subscribe(receiver.url, secret);
  const endpoint = { merchantId: world.merchantId, configId };
  const next = (streamId: string, nextAttemptAt: number | SQL, attempts: number) =>
    world.db
      .update(webhookDeliveries)
      .set({ nextAttemptAt, attempts })
      .where(and(eq(webhookDeliveries.streamId, streamId), eq(webhookDeliveries.state, 'PENDING')));
  const waiting = await payments.payment('hosted');
  await next(waiting.intentId, Date.now() + DAY, 1);
  await world.webhooks.wakeEndpoint(endpoint);
  const queue = world.client.workflow.getHandle(webhookEndpointWorkflowId(configId));
  await vi.waitFor(async () => {
    const { events } = await queue.fetchHistory();
    expect(events?.some((event) => event.timerStartedEventAttributes)).toBe(true);
  }, SOON);

  const deps = {
    db: world.db,
    gateway: world.gateway,
    payments: world.payments,
    wakeStream: async () => undefined,
  };
  const ref = await payments.payment('hosted');
  const order = { ...ref, token: await payments.card(), nowAt: Date.now() };
  expect(await createPaymentActivities(deps).chargePayment(order)).toEqual({ kind: 'succeeded' });
  await next(ref.intentId, minutesAgo(1), 0);
  expect(received()).toEqual([]);

  expect(await sweep(world)).toEqual({ stalledStreams: 1 });
  await vi.waitFor(
    () => expect(received()).toEqual(['1 intent.created', '2 intent.success']),
    SOON,
  );
  expect(await sweep(world)).toEqual({});
  expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  expect((await queue.describe()).status.name).toBe('RUNNING');
  expect(received()).toHaveLength(2);
  await receiver.close();
});
