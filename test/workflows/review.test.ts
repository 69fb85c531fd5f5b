import { eq } from 'drizzle-orm';
import { beforeEach, describe, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { decideReview, listReviews } from '../../db/repositories/payments/reviews.ts';
import { refunds } from '../../db/schema/payments.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { orderWorkflowId, recheck } from '../../workflows/orders/messages.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import {
  expectFirstDay,
  FIRST_DAY_CALLS,
  noteCall,
  secondsFromFirst,
} from '../support/call-times.ts';
import { command } from '../support/command.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import type { Payments } from '../support/payments.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TimeSkippingEnvironment, TestEnvironment } from '../support/test-environment.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/**
 * The workflow times, in epoch ms, of the calls of the activities that ask the gateway. `isMade` decides which of
 * these calls are made.
 */
const calledAt: number[] = [];
let isMade: (call: number) => boolean = () => true;

// Each test has its own environment. In a shared environment, a sleep of days would fire the timers of an
// earlier test.
const test = onTimeSkippingServerWith(
  // Each call during an outage uses up its whole send budget, so the budget is short.
  { wrap: withCallLog, sendBudget: { newSendsForMs: 200, pauseMs: 100 } },
  'test',
);

beforeEach(() => {
  calledAt.length = 0;
  isMade = () => true;
});

/** A call that is not made returns pending, as in an outage, without using the send budget. */
function withCallLog(activities: Activities): Activities {
  const log = async <T>(at: number, ask: () => Promise<T>): Promise<T | { kind: 'pending' }> => {
    noteCall(calledAt, at);
    return isMade(calledAt.length - 1) ? ask() : { kind: 'pending' };
  };
  return {
    ...activities,
    chargeAttempt: (input) => log(input.realNowAt, () => activities.chargeAttempt(input)),
    chargePayment: (input) => log(input.nowAt, () => activities.chargePayment(input)),
    lookForLateCharge: (input) => log(input.nowAt, () => activities.lookForLateCharge(input)),
  };
}

/** The number of events in the history of each of the subscription's runs, the latest first. */
async function historyLengths(env: TestEnvironment, { subscriptionId }: SubscriptionRef) {
  const lengths: number[] = [];
  let runId: string | undefined;
  do {
    const run = env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId), runId);
    const { events = [] } = await run.fetchHistory();
    lengths.push(events?.length ?? 0);
    runId = events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId ?? '';
  } while (runId !== '');
  return lengths;
}

/** Whole days from `from` to this and every later call. */
const daysSince = (from = 0) =>
  calledAt.filter((at) => at >= from).map((at) => Math.floor((at - from) / DAY));

const seconds = () => secondsFromFirst(calledAt);

/** Creates a subscription whose second cycle is declined. The next retry is four hours later. */
async function unpaid(env: TimeSkippingEnvironment) {
  const createdAt = await env.server.currentTimeMs();
  const ref = await env.create({ createdAt, terms: { cycleCount: 2, interval: 'DAY' } });
  await payCheckout(env, ref);
  const { subscriptionId } = ref;
  await env.control('POST', '/control/declines', {
    subscriptionId,
    code: 'card_declined',
    count: 1,
  });
  await env.server.sleep(DAY + HOUR);
  await waitForState(env, ref, { status: 'UNPAID' });
  calledAt.length = 0;
  return ref;
}

const waitForState = (env: TestEnvironment, ref: SubscriptionRef, expected: object) =>
  eventually(async () => expect(await env.state(ref)).toMatchObject(expected));

describe('a gateway outage', () => {
  test('lasting an hour blocks no edit, pause or cancel, and the charge’s success is recorded after it', async ({
    env,
  }) => {
    const ref = await unpaid(env);
    await env.gatewayAway('done');
    isMade = (call) => call === 0 || call > 5;
    await env.server.sleep(3 * HOUR + 5 * 60_000);
    await waitForState(env, ref, { openAttempt: { trigger: 'automatic_retry' } });
    await env.server.sleep(10 * 60_000);
    expect(await env.workflows.execute(ref, command('manualRetry'))).toMatchObject({
      kind: 'refused',
      code: 'payment_outcome_pending',
    });
    const done = { kind: 'result', result: { kind: 'done' } };
    expect(await env.workflows.execute(ref, command('edit', { newAmountMinor: 2_500 }))).toEqual(
      done,
    );
    expect(await env.workflows.execute(ref, command('pause'))).toEqual(done);
    await env.server.sleep(50 * 60_000);
    expect(await env.workflows.execute(ref, command('cancel', { reason: 'cancelled' }))).toEqual(
      done,
    );
    await env.gatewayBack();
    await env.server.sleep(5 * 60_000);
    await waitForState(env, ref, { status: 'ENDED', cyclesCharged: 2, openAttempt: null });
    expect((await env.book(ref)).map(({ outcome, sentCount }) => [outcome, sentCount])).toEqual([
      ['succeeded', 1],
      ['declined', 1],
      ['succeeded', 1],
    ]);
  });

  test('lasting a day puts the retry in manual review, with daily look-ups until the retry is settled', async ({
    env,
  }) => {
    const ref = await unpaid(env);
    await env.gatewayAway('none');
    isMade = (call) => call === 0 || call >= FIRST_DAY_CALLS - 1;
    await env.server.sleep(3 * HOUR + 25.5 * HOUR);
    await waitForState(env, ref, {
      openAttempt: { reviewReason: expect.stringMatching(/^asked for/) },
    });
    expectFirstDay(calledAt);
    const lengths = await historyLengths(env, ref);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(430);
    expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(12 * FIRST_DAY_CALLS);
    const [waiting] = await listReviews(env.db, { settled: false, limit: 10 });
    expect(waiting).toMatchObject({
      ...ref,
      state: 'REVIEW',
      cycleNumber: 2,
      amountMinor: 1_999,
      reason: 'asked for 24 h: the gateway answered 500',
    });
    await env.server.sleep(2 * DAY);
    expect(daysSince(calledAt[FIRST_DAY_CALLS - 1])).toEqual([0, 1, 2]);
    expect((await env.timeline(ref)).filter(({ what }) => /person/.test(what))).toHaveLength(1);

    const decision = { gatewayId: null, code: null, by: 'Ada', note: 'not in the bank statement' };
    const id = waiting?.subjectId ?? '';
    const outcome = 'not_charged' as const;
    expect(await decideReview(env.db, id, { ...decision, outcome })).toMatchObject({ ok: true });
    await env.gatewayBack();
    await env.workflows.recheck(ref);
    // The next date of the retry plan has passed, so the retry is made at once under a new key.
    await waitForState(env, ref, { status: 'ENDED', cyclesCharged: 2, openAttempt: null });
    const emitted = (await env.events(ref)).map((event) => event['eventType']).slice(-4);
    expect(emitted).toEqual([
      'intent.failed',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.ended',
    ]);
    expect((await env.book(ref)).map(({ key }) => key.slice(-2))).toEqual([':1', ':1', ':3']);
    await env.client.workflow.getHandle(orderWorkflowId('lateCharge', id)).terminate();
  });

  test('lasting a day puts a one-off payment in manual review, with daily look-ups', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    await env.gatewayAway('none');
    isMade = (call) => call === 0 || call >= FIRST_DAY_CALLS - 1;
    const input = { order: { ...ref, token: null }, lookups: 0 };
    const workflowId = `payment/${ref.intentId}`;
    const taskQueue = `${env.taskQueuePrefix}billing`;
    const handle = await env.client.workflow.start('payment', {
      workflowId,
      taskQueue,
      args: [input],
    });
    await env.server.sleep(25.5 * HOUR + DAY);
    expect(await payments.attempts(ref)).toEqual(['1 REVIEW']);
    expectFirstDay(calledAt.slice(0, FIRST_DAY_CALLS));
    expect(daysSince(calledAt[FIRST_DAY_CALLS - 1])).toEqual([0, 1]);
    await env.gatewayBack();
    const [waiting] = await listReviews(env.db, { settled: false, limit: 10 });
    expect(waiting).toMatchObject({ ...ref, subscriptionId: null, amountMinor: 5_000 });
    await decideReview(env.db, waiting?.subjectId ?? '', {
      outcome: 'paid',
      gatewayId: 'ch_seen_by_a_person',
      code: null,
      by: 'Ada',
      note: 'in the bank statement',
    });
    await env.client.workflow.getHandle(workflowId).signal(recheck);
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(await payments.story(ref.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
    ]);
    expect(await listReviews(env.db, { settled: false, limit: 10 })).toEqual([]);
  });
});

describe('a payment settled as not charged', () => {
  async function settledAsNotCharged(env: TimeSkippingEnvironment, payments: Payments) {
    const ref = await payments.tokenised();
    await env.gatewayAway('none');
    const input = { ...ref, token: null, nowAt: Date.now(), lookups: FIRST_DAY_CALLS - 1 };
    expect(await env.activities.chargePayment(input)).toMatchObject({ needsPerson: true });
    const attempt = await payments.attempt(ref);
    const decision = { gatewayId: null, code: null, by: 'Ada', note: 'nothing there' };
    await decideReview(env.db, attempt.id, { ...decision, outcome: 'not_charged' });
    await env.gatewayBack();
    calledAt.length = 0;
    expect(await env.activities.chargePayment(input)).toEqual({
      kind: 'declined',
      errorCode: 'processing_error',
    });
    // The activity that recorded the decline has started the watch for a late charge.
    const handle = env.client.workflow.getHandle(orderWorkflowId('lateCharge', attempt.id));
    return { ref, attempt, handle };
  }

  test('is looked up at the gateway for a week and then no more', async ({ env, payments }) => {
    const { ref, handle } = await settledAsNotCharged(env, payments);
    expect(await handle.result()).toEqual({ paymentToken: null, outcome: { kind: 'absent' } });
    expect(seconds()).toEqual([0, 600, 3_600, 21_600, 86_400, 259_200, 604_800]);
    expect(await payments.book(ref)).toEqual([]);
    expect(await payments.attempts(ref)).toEqual(['1 DECLINED']);
  });

  test('keeps its decline when a late charge is found and refunded', async ({ env, payments }) => {
    const { ref, attempt, handle } = await settledAsNotCharged(env, payments);
    await env.server.sleep(2 * HOUR);
    // The lost request arrives late.
    const gatewayChargeId = await payments.chargeOutside(attempt);
    const { outcome } = (await handle.result()) as { outcome: { refundId: string } };
    expect(outcome).toMatchObject({ gatewayChargeId, kind: 'found' });
    await expect
      .poll(() => payments.refundRow(outcome))
      .toMatchObject({
        state: 'SUCCEEDED',
        gatewayKey: `refund:${attempt.id}`,
        lateAttemptId: attempt.id,
        amountMinor: 5_000,
      });
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1 back 5000']);
    expect(await payments.attempts(ref)).toEqual(['1 DECLINED']);
    expect(await payments.intent(ref)).toMatchObject({ status: 'FAILED', refundedMinor: 0 });
    const [again] = await env.db.select().from(refunds).where(eq(refunds.intentId, ref.intentId));
    expect(again?.id).toBe(outcome.refundId);
    expect(await payments.story(ref.intentId)).toEqual([
      'intent.created CREATED',
      'intent.failed FAILED',
    ]);
  });
});
