import { eq, sql } from 'drizzle-orm';
import { expect } from 'vitest';
import { bookLateCharge } from '../../db/repositories/payments/late-charges.ts';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import type { Decision } from '../../db/repositories/payments/reviews.ts';
import { settleRefund } from '../../db/repositories/payments/refunds.ts';
import { paymentReviews } from '../../db/schema/payments.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import { sweepCounts } from '../../db/schema/sweeps.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { orderWorkflowId, recheck } from '../../workflows/orders/messages.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { Payments } from '../support/payments.ts';
import { repairsOf } from '../support/repairs.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * A process changes a row and crashes before it signals the row's sleeping workflow. A sweep must find
 * each such row once, and nothing may be charged twice.
 */

const minutesAgo = (minutes: number) => sql`now() - ${minutes} * interval '1 minute'`;

async function counts(env: TestEnvironment): Promise<Record<string, number>> {
  const rows = await env.db.select().from(sweepCounts);
  return Object.fromEntries(rows.map(({ kind, repaired }) => [kind, repaired]));
}

/**
 * Runs one sweep and returns the repairs that it reports. Expects that the stored counts grow by the same
 * numbers.
 */
async function sweep(env: TestEnvironment): Promise<Record<string, number>> {
  const before = await counts(env);
  const repaired = await repairsOf(env);
  const increases = Object.entries(await counts(env))
    .map(([kind, count]): [string, number] => [kind, count - (before[kind] ?? 0)])
    .filter(([, count]) => count > 0);
  expect(Object.fromEntries(increases)).toEqual(repaired);
  return repaired;
}

const statusOf = async (env: TestEnvironment, workflowId: string) =>
  (await env.client.workflow.getHandle(workflowId).describe()).status.name;

const charges = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.book(ref)).map(
    ({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`,
  );

test('the sweep refunds a late charge once when no workflow was signalled', async ({
  env,
  payments,
}) => {
  const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z', { cycleCount: 2 });
  const [{ intentId }] = (await env.events(ref)) as [{ intentId: string }];
  const attempt = await payments.attempt({ intentId });
  const gatewayChargeId = await payments.chargeOutside(attempt, `${attempt.gatewayKey}:late`);
  const { refundId } = await bookLateCharge(env.db, attempt, gatewayChargeId, Date.now());
  await env.age('refund', refundId);

  expect(await sweep(env)).toEqual({ openRefunds: 1 });
  const refunding = env.client.workflow.getHandle(orderWorkflowId('refund', refundId));
  expect(await refunding.result()).toMatchObject({ outcome: { kind: 'refunded' } });
  expect((await payments.book({ ...ref, intentId })).toSorted()).toEqual([
    'succeeded 1999 x1',
    'succeeded 1999 x1 back 1999',
  ]);

  // The workflow has not read the row since the late charge was recorded. The workflow must read the row
  // before it charges the next cycle.
  await env.advance(clock, '2027-02-10T00:00:00Z');
  expect(await charges(env, ref)).toEqual(['succeeded 1999 x1', 'succeeded 1999 x1']);
  expect((await env.timeline(ref)).map(({ what }) => what)).toContain(
    'a late charge came to light, 19.99 USD',
  );
  expect(await sweep(env)).toEqual({});
});

const BY_ADA = { code: null, by: 'Ada', note: 'asked the gateway on the phone' };

/** Records a decision without a signal to the workflow, and dates it two minutes back. */
async function decide(
  env: TestEnvironment,
  id: string,
  decision: Pick<Decision, 'outcome' | 'gatewayId'>,
) {
  expect(await decideReview(env.db, id, { ...BY_ADA, ...decision })).toMatchObject({ ok: true });
  await passMinute(env, id);
}

const passMinute = (env: TestEnvironment, id: string) =>
  env.db
    .update(paymentReviews)
    .set({ updatedAt: minutesAgo(2) })
    .where(eq(paymentReviews.subjectId, id));

/** Creates a payment in manual review: the gateway rejects its request. */
async function paymentInReview(env: TestEnvironment, payments: Payments) {
  const saved = await payments.saved();
  const setMethod = (gatewayMethodId: string) =>
    env.db
      .update(paymentMethods)
      .set({ gatewayMethodId })
      .where(eq(paymentMethods.id, saved.paymentMethodId));
  const [method] = await env.db
    .select()
    .from(paymentMethods)
    .where(eq(paymentMethods.id, saved.paymentMethodId));
  await setMethod('');
  const ref = await payments.payment('tokenised', saved);
  await env.orders.ensureRunning('payment', { ...ref, token: null });
  await expect.poll(() => payments.attempts(ref)).toEqual(['1 REVIEW']);
  await setMethod(method?.gatewayMethodId ?? '');
  const attempt = await payments.attempt(ref);
  const gatewayMethodId = method?.gatewayMethodId ?? '';
  return { ref, attempt: { ...attempt, gatewayMethodId } };
}

test('the sweep settles a payment once when a review found it paid and no signal was sent', async ({
  env,
  payments,
}) => {
  const { ref, attempt } = await paymentInReview(env, payments);
  const gatewayId = await payments.chargeOutside(attempt, `${attempt.gatewayKey}:by-phone`);
  await decide(env, attempt.id, { outcome: 'paid', gatewayId });
  expect(await payments.attempts(ref)).toEqual(['1 REVIEW']);
  expect(await statusOf(env, orderWorkflowId('payment', ref.intentId))).toBe('RUNNING');

  expect(await sweep(env)).toEqual({ decidedReviews: 1 });
  const paying = env.client.workflow.getHandle(orderWorkflowId('payment', ref.intentId));
  expect(await paying.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
  expect(await payments.attempts(ref)).toEqual(['1 SUCCEEDED']);
  expect(await payments.story(ref.intentId)).toEqual([
    'intent.created CREATED',
    'intent.success SUCCESS',
  ]);

  await passMinute(env, attempt.id);
  expect(await sweep(env)).toEqual({});
  expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  expect(await payments.story(ref.intentId)).toHaveLength(2);
});

test('the sweep settles a payment as declined and starts a late-charge watch when a review found no charge', async ({
  env,
  payments,
}) => {
  const { ref, attempt } = await paymentInReview(env, payments);
  await decide(env, attempt.id, { outcome: 'not_charged', gatewayId: null });

  expect(await sweep(env)).toEqual({ decidedReviews: 1 });
  const paying = env.client.workflow.getHandle(orderWorkflowId('payment', ref.intentId));
  expect(await paying.result()).toMatchObject({ outcome: { kind: 'declined' } });
  const watch = env.client.workflow.getHandle(orderWorkflowId('lateCharge', attempt.id));
  expect((await watch.describe()).status.name).toBe('RUNNING');
  await passMinute(env, attempt.id);
  expect(await sweep(env)).toEqual({});
  // The watch is terminated; the next sweep starts it again.
  await watch.terminate('lost');
  await passMinute(env, attempt.id);
  expect(await sweep(env)).toEqual({ decidedReviews: 1 });
  await passMinute(env, attempt.id);
  expect(await sweep(env)).toEqual({});

  await payments.chargeOutside(attempt);
  await watch.signal(recheck);
  expect(await watch.result()).toMatchObject({ outcome: { kind: 'found' } });
  await expect.poll(() => payments.book(ref)).toEqual(['succeeded 5000 x1 back 5000']);
  expect(await payments.attempts(ref)).toEqual(['1 DECLINED']);
  await passMinute(env, attempt.id);
  expect(await sweep(env)).toEqual({});
});

test('the sweep settles a refund once when a review found it refunded and no signal was sent', async ({
  env,
  payments,
}) => {
  const paid = await payments.paid();
  const { ref } = await payments.refund(paid, 1_200);
  const row = await payments.refundRow(ref);
  await settleRefund(env.db, row, { kind: 'review', reason: 'asked for 24 h' }, Date.now());
  await decide(env, ref.refundId, { outcome: 'refunded', gatewayId: 're_by_hand' });

  expect(await sweep(env)).toEqual({ decidedReviews: 1 });
  const refunding = env.client.workflow.getHandle(orderWorkflowId('refund', ref.refundId));
  expect(await refunding.result()).toMatchObject({ outcome: { kind: 'refunded' } });
  const expectedEvents = [
    'intent.created CREATED',
    'intent.success SUCCESS',
    'intent.refunded PARTIALLY_REFUNDED',
  ];
  expect(await payments.story(paid.intentId)).toEqual(expectedEvents);

  await passMinute(env, ref.refundId);
  expect(await sweep(env)).toEqual({});
  expect(await payments.intent(paid)).toMatchObject({ refundedMinor: 1_200 });
  expect(await payments.book(paid)).toEqual(['succeeded 5000 x1']);
  expect(await payments.story(paid.intentId)).toEqual(expectedEvents);
});
