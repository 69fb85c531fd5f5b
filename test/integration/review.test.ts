import { eq, sql } from 'drizzle-orm';
import { describe, expect, inject } from 'vitest';
import { findRefund, settleRefund } from '../../db/repositories/payments/refunds.ts';
import { operatorActions } from '../../db/schema/operator-actions.ts';
import { paymentAttempts, paymentReviews } from '../../db/schema/payments.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { reviewCommand } from '../../cli/review/command.ts';
import { orderWorkflowId, recheck } from '../../workflows/orders/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { findings } from '../support/findings.ts';
import { runCommand, runProgram } from '../support/run-command.ts';
import type { Payments } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { unpaidIn } from '../support/unpaid.ts';

const REASON = 'the gateway refused the request: 400 field_invalid';
test.afterEach(({ env }) => env.control('DELETE', '/control/faults'));

/** An address at which no Temporal server listens. */
const NOWHERE = '127.0.0.1:9';

const variables = (env: TestEnvironment, temporalAddress = inject('temporalAddress')) => ({
  DATABASE_URL: env.databaseUrl,
  TEMPORAL_ADDRESS: temporalAddress,
  TASK_QUEUE_PREFIX: env.taskQueuePrefix,
});

/** Runs `npm run review -- …` in the test environment. */
const review = (env: TestEnvironment, args: string[], temporalAddress?: string) =>
  runCommand(reviewCommand, variables(env, temporalAddress), args);

const BY_ADA = ['--by', 'Ada', '--note', 'asked the gateway on the phone'];

interface Listed {
  id: string;
  subscriptionId: string | null;
  settled: { outcome: string; by: string; note: string } | null;
}

const list = async (env: TestEnvironment, ...args: string[]) =>
  JSON.parse((await review(env, ['list', '--json', ...args])).stdout) as Listed[];

/** Sets the gateway id of the card. With an empty id the gateway rejects the request. */
const setMethod = (env: TestEnvironment, gatewayMethodId: string, paymentMethodId: string) =>
  env.db
    .update(paymentMethods)
    .set({ gatewayMethodId })
    .where(eq(paymentMethods.id, paymentMethodId));

/** Creates a subscription whose second cycle was declined and whose manual retry is in manual review. */
async function inReview(env: TestEnvironment) {
  const { ref, clock } = await unpaidIn(env);
  const { paymentMethodId } = await env.state(ref);
  const [method] = await env.db
    .select()
    .from(paymentMethods)
    .where(eq(paymentMethods.id, paymentMethodId ?? ''));
  if (!method) throw new Error('no method');
  await setMethod(env, '', method.id);
  expect(await env.execute(ref, command('manualRetry'))).toEqual({ kind: 'pending' });
  await setMethod(env, method.gatewayMethodId, method.id);
  expect((await env.state(ref)).openAttempt).toMatchObject({ reviewReason: REASON });
  const [attempt] = await env.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.state, 'REVIEW'));
  if (!attempt) throw new Error('no attempt in review');
  const { id, gatewayKey: key, intentId, currency } = attempt;
  const { gatewayMethodId } = method;
  const reference = { ...ref, intentId, paymentMethodId: method.id };
  /** The lost request of the retry arrives at the gateway. */
  const arrive = (amountMinor = attempt.amountMinor) =>
    env.gateway.charge({
      key,
      gatewayChargeId: null,
      gatewayMethodId,
      amountMinor,
      currency,
      reference,
    });
  return { ref, clock, attempt, arrive, id };
}

const timeline = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.timeline(ref)).map(({ what, why }) => `${what}: ${why}`);

const eventsSince = async (env: TestEnvironment, ref: SubscriptionRef, before: number) =>
  (await env.events(ref)).slice(before).map((event) => event['eventType']);

describe('a payment in review', () => {
  test('is listed, settled once as not charged, and shown in the timeline', async ({ env }) => {
    const { ref, id } = await inReview(env);
    expect(await findings(env)).toEqual({
      wrong: [],
      forPerson: [expect.stringMatching(new RegExp(`^attempt ${id} .* needs manual review since`))],
    });
    await eventually(async () => {
      const { typedSearchAttributes } = await env.client.workflow
        .getHandle(subscriptionWorkflowId(ref.subscriptionId))
        .describe();
      expect(JSON.stringify(typedSearchAttributes)).toContain('"review"');
    });
    expect(await list(env)).toEqual([
      {
        id,
        ...ref,
        intentId: expect.stringMatching(/^in_/) as string,
        cycleNumber: 2,
        gatewayKey: expect.stringMatching(/^charge:in_\w+:2$/) as string,
        amountMinor: 1_999,
        currency: 'USD',
        state: 'REVIEW',
        reason: REASON,
        since: expect.stringMatching(/Z$/) as string,
        settled: null,
      },
    ]);
    expect((await review(env, ['list'])).stdout).toContain(`${ref.subscriptionId}, cycle 2, in_`);
    // While the payment is in review, an edit is accepted and a second attempt is refused.
    const done = { kind: 'result', result: { kind: 'done' } };
    expect(await env.execute(ref, command('edit', { newAmountMinor: 2_500 }))).toEqual(done);
    expect(await env.execute(ref, command('manualRetry'))).toMatchObject({
      code: 'payment_outcome_pending',
    });

    const before = (await env.events(ref)).length;
    const settled = await review(env, ['settle', id, '--not-charged', ...BY_ADA]);
    expect(settled.stdout).toBe(
      `${id} is settled: not_charged, by Ada.\nIt is booked as DECLINED, as decided.\n`,
    );
    const { facts, ...action } = (await env.db.select().from(operatorActions))[0]!;
    expect([action.actedBy, action.command, action.subject]).toEqual(['Ada', 'review settle', id]);
    expect(facts).toEqual({ outcome: 'not_charged', gatewayId: null, code: null });
    expect(await env.state(ref)).toMatchObject({
      status: 'UNPAID',
      openAttempt: null,
      owed: { lastDeclineCode: 'processing_error', nextRetryAt: Date.parse('2027-02-10T04:00Z') },
    });
    expect(await eventsSince(env, ref, before)).toEqual(['intent.failed']);
    const lines = await timeline(env, ref);
    expect(lines).toContain(`a payment needs a person: ${REASON}`);
    expect(lines.at(-1)).toBe(
      'cycle 2 declined (processing_error): the merchant asked for a retry (attempt 2); a person settled it',
    );

    const again = await review(env, ['settle', id, '--paid', 'ch_1', ...BY_ADA]);
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^${id} was settled already: not_charged by Ada, `),
      ) as string,
    });
    expect(await list(env)).toEqual([]);
    const [kept] = (await list(env, '--settled')).filter((one) => one.id === id);
    expect(kept?.settled).toMatchObject({ by: 'Ada', note: 'asked the gateway on the phone' });
    expect(await findings(env)).toEqual({ wrong: [], forPerson: [] });
  });

  test('is settled as paid by the sweep when Temporal was unreachable at the decision', async ({
    env,
  }) => {
    const { ref, id } = await inReview(env);
    const before = (await env.events(ref)).length;
    const settle = ['settle', id, '--paid', `ch_by_phone_${id}`, ...BY_ADA];
    const settled = await review(env, settle, NOWHERE);
    expect(settled.stdout).toContain('It is not booked yet');
    expect((await review(env, settle)).stderr).toContain('was settled already: paid by Ada');
    expect((await env.state(ref)).status).toBe('UNPAID');
    // The sweep takes a review that has been unchanged for 1 min, so the test dates the change back by 61 s.
    await env.db
      .update(paymentReviews)
      .set({ updatedAt: sql`now() - interval '61 seconds'` })
      .where(eq(paymentReviews.subjectId, id));
    const report = await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
    expect(report).toMatchObject({ decidedReviews: 1, failed: 0 });
    await expect.poll(async () => (await env.state(ref)).status).toBe('ACTIVE');
    expect(await eventsSince(env, ref, before)).toEqual([
      'intent.success',
      'subscription.cycle_charged',
      'subscription.active',
    ]);
    expect(await findings(env)).toEqual({ wrong: [], forPerson: [] });
  });

  test('is refunded once when its charge arrives after it was settled as not charged', async ({
    env,
    payments,
  }) => {
    const { ref, clock, attempt, arrive, id } = await inReview(env);
    await review(env, ['settle', id, '--not-charged', ...BY_ADA]);
    // The next retry pays the cycle. After that the lost request arrives.
    await env.advance(clock, '2027-02-10T04:00:00Z');
    expect((await env.state(ref)).cyclesCharged).toBe(2);
    await arrive();
    const watch = env.client.workflow.getHandle(orderWorkflowId('lateCharge', id));
    await watch.signal(recheck);
    expect(await watch.result()).toMatchObject({ outcome: { kind: 'found' } });
    await expect
      .poll(async () => (await payments.book(attempt)).filter((line) => line.includes('back')))
      .toEqual(['succeeded 1999 x1 back 1999']);
    await expect
      .poll(async () => (await timeline(env, ref)).at(-1))
      .toBe(
        `a late charge came to light, 19.99 USD: ${attempt.gatewayKey} had been settled as not paid; it is given back`,
      );
    expect(await payments.intent(attempt)).toMatchObject({ status: 'SUCCESS', refundedMinor: 0 });
    await env.advance(clock, '2027-03-10T00:00:00Z');
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 3 });
    expect(await findings(env)).toEqual({ wrong: [], forPerson: [] });
  });

  test('is settled as paid against the operator’s decision when the gateway has the charge', async ({
    env,
  }) => {
    const { ref, arrive, id } = await inReview(env);
    await arrive();
    const settled = await review(env, ['settle', id, '--not-charged', ...BY_ADA]);
    expect(settled.stdout).toContain('It is booked as SUCCEEDED, as the gateway now answers.');
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    expect(await findings(env)).toEqual({ wrong: [], forPerson: [] });
  });
});

/** A refund of 12.00 of 50.00 USD that was not sent. */
async function refundInReview(env: TestEnvironment, payments: Payments) {
  const paid = await payments.paid();
  const { ref } = await payments.refund(paid, 1_200);
  const row = (await findRefund(env.db, ref.merchantId, ref.refundId))!;
  const lost = { kind: 'review', reason: 'the gateway has lost the refund' } as const;
  await settleRefund(env.db, row, lost, Date.now());
  return { paid, ref, row };
}

describe('a refund in review', () => {
  test('is settled as not refunded, and its amount can be refunded again [D-§7]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await refundInReview(env, payments);
    expect(await env.orders.ensureRunning('refund', ref)).toBe(true);
    await expect.poll(async () => (await payments.refundRow(ref)).state).toBe('REVIEW');
    expect((await list(env)).map(({ id }) => id)).toEqual([ref.refundId]);
    expect((await review(env, ['settle', ref.refundId, '--not-charged', ...BY_ADA])).stderr).toBe(
      `${ref.refundId} allows only --refunded <gatewayRefundId> or --not-refunded.\n`,
    );
    const settled = await review(env, ['settle', ref.refundId, '--not-refunded', ...BY_ADA]);
    expect(settled.stdout).toContain('It is booked as REFUSED, as decided.');
    expect(await payments.refundRow(ref)).toMatchObject({ state: 'REFUSED' });
    expect(await payments.intent(paid)).toMatchObject({ status: 'SUCCESS', refundedMinor: 0 });
    const second = await payments.refund(paid, 5_000);
    expect(await env.orders.execute('refund', second.ref)).toEqual({ kind: 'refunded' });
  });

  test('is not settled by the gateway id of another refund, and is then listed behind open reviews [D-§7]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await refundInReview(env, payments);
    const other = await payments.refund(paid, 1_000);
    expect(await env.orders.execute('refund', other.ref)).toEqual({ kind: 'refunded' });
    const { gatewayRefundId } = await payments.refundRow(other.ref);
    const taken = ['settle', ref.refundId, '--refunded', gatewayRefundId ?? ''];
    expect(await review(env, [...taken, ...BY_ADA])).toMatchObject({
      code: 1,
      stderr: `${gatewayRefundId} has already settled ${other.ref.refundId}.\n`,
    });
    await review(env, ['settle', ref.refundId, '--not-refunded', ...BY_ADA]);
    const open = await refundInReview(env, payments);
    const listed = await list(env, '--settled');
    expect(listed.slice(0, 2).map(({ id }) => id)).toEqual([open.ref.refundId, ref.refundId]);
    await review(env, ['settle', open.ref.refundId, '--not-refunded', ...BY_ADA]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1000']);
  });

  test('is settled as refunded against the operator’s decision when the gateway has the refund, until that fails [D-40, D-50]', async ({
    env,
    payments,
  }) => {
    const { paid, ref, row } = await refundInReview(env, payments);
    // No workflow runs that could find the gateway's answer before the decision.
    const { gatewayKey: key, gatewayChargeId, amountMinor, currency } = row;
    await env.gateway.refund({ key, gatewayChargeId, amountMinor, currency });
    const settled = await review(env, ['settle', ref.refundId, '--not-refunded', ...BY_ADA]);
    expect(settled.stdout).toContain('It is booked as SUCCEEDED, as the gateway now answers.');
    expect(await payments.refundRow(ref)).toMatchObject({ state: 'SUCCEEDED' });
    expect(await payments.intent(paid)).toMatchObject({ refundedMinor: 1_200 });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1200']);
    // The gateway's refund fails days later, against which the operator has decided nothing.
    await env.control('POST', '/control/refunds', { key, status: 'failed' });
    await env.orders.recheck('refund', ref);
    await expect.poll(async () => (await payments.refundRow(ref)).state).toBe('REFUSED');
    expect(await payments.intent(paid)).toMatchObject({ status: 'SUCCESS', refundedMinor: 0 });
    expect((await payments.story(paid.intentId)).slice(-2)).toEqual([
      'intent.refunded PARTIALLY_REFUNDED',
      'intent.refund_failed SUCCESS',
    ]);
  });
});

test('an attempt cannot be settled when it was never in review', async ({ env }) => {
  const settle = ['settle', 'att_nobody', '--not-charged'];
  const refused = {
    code: 1,
    stdout: '',
    stderr: 'att_nobody is not in REVIEW and never was.\n',
  };
  const given = [...settle, ...BY_ADA];
  expect(await runProgram('cli/review.ts', variables(env), given)).toEqual(refused);
  expect(await review(env, given)).toEqual(refused);
  expect(await review(env, settle)).toMatchObject({ code: 1 });
});

test('a review needs a person again when a charge of another amount arrives after it was settled as not charged', async ({
  env,
}) => {
  const { ref, attempt, arrive, id } = await inReview(env);
  await review(env, ['settle', id, '--not-charged', ...BY_ADA]);
  await expect.poll(async () => (await env.state(ref)).openAttempt).toBeNull();
  await arrive(attempt.amountMinor + 1);
  const look = { merchantId: ref.merchantId, attemptId: id, nowAt: Date.now() };
  expect(await env.activities.lookForLateCharge(look)).toEqual({
    kind: 'pending',
    needsPerson: true,
  });
  expect(await findings(env)).toEqual({
    wrong: [
      `attempt ${attempt.gatewayKey} is DECLINED here and succeeded in the gateway's book`,
      `${attempt.gatewayKey}: the gateway charged 2000 USD, but 1999 USD was owed`,
    ],
    forPerson: [],
  });
});
