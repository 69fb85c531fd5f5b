import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { refunds } from '../../db/schema/payments.ts';
import type { IntentRef } from '../../domain/payment-intent.ts';
import type { RefundRef } from '../../domain/refund.ts';
import { refundKey } from '../../domain/refund.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { onDevServer } from '../support/environment.ts';
import type { Payments } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Refunds that the gateway accepts and decides later. */

const test = onDevServer;

test.afterEach(({ env }) => env.control('DELETE', '/control/faults'));

const PAID = ['intent.created CREATED', 'intent.success SUCCESS'];
const ACCEPTED = { kind: 'pending', isAccepted: true };

const decide = (env: TestEnvironment, { refundId }: RefundRef, status: string) =>
  env.control('POST', '/control/refunds', { key: refundKey(refundId), status });

/** Calls the activity once, as the refund's workflow does. */
const ask = (env: TestEnvironment, ref: RefundRef, lookups = 0) =>
  env.activities.refundPayment({ ...ref, nowAt: Date.now(), lookups });

/** The row does not have the gateway's id, as after a lost answer. */
const setState = (env: TestEnvironment, { refundId }: RefundRef, state: 'UNKNOWN' | 'REVIEW') =>
  env.db.update(refunds).set({ state, gatewayRefundId: null }).where(eq(refunds.id, refundId));

/** Creates a refund that the gateway has accepted and not yet decided. */
async function pendingRefund(
  env: TestEnvironment,
  payments: Payments,
  amountMinor: number | null = null,
) {
  const paid = await payments.paid();
  const { ref } = await payments.refund(paid, amountMinor);
  await env.control('POST', '/control/faults', { operation: 'refund', fault: 'pending', count: 1 });
  expect(await ask(env, ref)).toEqual(ACCEPTED);
  return { paid, ref };
}

/** The intent's status and refunded amount. */
async function intentOf(payments: Payments, paid: IntentRef) {
  const { status, refundedMinor } = await payments.intent(paid);
  return [status, refundedMinor];
}

describe('a refund that the gateway decides later', () => {
  test('keeps the gateway’s id and does not show as refunded while it is pending [D-40]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await pendingRefund(env, payments, 2_000);
    expect(await payments.refundRow(ref)).toMatchObject({
      state: 'PENDING',
      gatewayRefundId: expect.stringMatching(/^re_/),
      refundedAt: null,
      reason: null,
    });
    expect(await intentOf(payments, paid)).toEqual(['SUCCESS', 0]);
    expect(await payments.refund(paid, 3_001)).toMatchObject({
      kind: 'refused',
      message: 'No more than 30.00 USD is left to refund.',
    });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1']);
    expect(await payments.story(paid.intentId)).toEqual(PAID);
  });

  test('is refunded once, with one event, when it succeeds [D-40, D-51]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await pendingRefund(env, payments);
    expect(await ask(env, ref)).toEqual(ACCEPTED);
    await decide(env, ref, 'succeeded');
    expect(await ask(env, ref)).toEqual({ kind: 'refunded' });
    expect(await ask(env, ref)).toEqual({ kind: 'refunded' });
    expect(await intentOf(payments, paid)).toEqual(['REFUNDED', 5_000]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refunded REFUNDED']);
  });

  test('frees its amount and emits one event when it fails [D-40, D-50]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await pendingRefund(env, payments);
    await decide(env, ref, 'failed');
    const refused = {
      kind: 'refused',
      message: 'The gateway accepted the refund, which failed later: refund_failed.',
    };
    expect(await ask(env, ref)).toEqual(refused);
    expect(await ask(env, ref)).toEqual(refused);
    expect(await intentOf(payments, paid)).toEqual(['SUCCESS', 0]);
    expect((await payments.told(paid.intentId)).at(-1)).toMatchObject({
      sequence: 3,
      eventType: 'intent.refund_failed',
      status: 'SUCCESS',
      refundId: ref.refundId,
      failedAmount: 5_000,
    });
    const next = await payments.refund(paid);
    expect(await ask(env, next.ref)).toEqual({ kind: 'refunded' });
    expect(await payments.story(paid.intentId)).toEqual([
      ...PAID,
      'intent.refund_failed SUCCESS',
      'intent.refunded REFUNDED',
    ]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
  });

  test('emits an event also when the answer of its acceptance was lost and a resend finds it failed [D-50]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await pendingRefund(env, payments);
    await setState(env, ref, 'UNKNOWN');
    await decide(env, ref, 'failed');
    expect(await ask(env, ref)).toMatchObject({ kind: 'refused' });
    expect(await intentOf(payments, paid)).toEqual(['SUCCESS', 0]);
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refund_failed SUCCESS']);
  });

  test.for([
    ['succeeded', { kind: 'refunded' }, ['REFUNDED', 5_000], 'intent.refunded REFUNDED'],
    ['failed', { kind: 'refused' }, ['SUCCESS', 0], 'intent.refund_failed SUCCESS'],
  ] as const)(
    'leaves REVIEW with the outcome %s when the gateway answers after all [D-40]',
    async ([status, outcome, intent, event], { env, payments }) => {
      const { paid, ref } = await pendingRefund(env, payments);
      await setState(env, ref, 'REVIEW');
      expect(await ask(env, ref)).toEqual(ACCEPTED);
      await setState(env, ref, 'REVIEW');
      await decide(env, ref, status);
      expect(await ask(env, ref)).toMatchObject(outcome);
      expect(await ask(env, ref)).toMatchObject(outcome);
      expect(await intentOf(payments, paid)).toEqual(intent);
      expect(await payments.story(paid.intentId)).toEqual([...PAID, event]);
    },
  );

  test('stays PENDING when look-ups fail after more than a day [D-40]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await pendingRefund(env, payments);
    await env.control('POST', '/control/faults', {
      operation: 'refund_lookup',
      fault: 'error_500',
      count: 1_000,
    });
    expect(await ask(env, ref, 100)).toEqual({ kind: 'pending' });
    expect(await payments.refundRow(ref)).toMatchObject({ state: 'PENDING', reason: null });
    await env.control('DELETE', '/control/faults');
    await decide(env, ref, 'succeeded');
    expect(await ask(env, ref, 101)).toEqual({ kind: 'refunded' });
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refunded REFUNDED']);
  });

  test('is resumed by the sweep when its workflow was terminated, at most once an hour [D-40]', async ({
    env,
    payments,
  }) => {
    const { paid, ref } = await pendingRefund(env, payments);
    await env.orders.recheck('refund', ref);
    const run = env.client.workflow.getHandle(orderWorkflowId('refund', ref.refundId));
    // Waits for the workflow's first timer, so that no look-up is running. A termination does not end a running
    // look-up, which could settle the refund.
    await expect
      .poll(async () => {
        const { events } = await run.fetchHistory();
        return events?.some((event) => Boolean(event.timerStartedEventAttributes));
      })
      .toBe(true);
    await run.terminate('clicked');
    await env.age('refund', ref.refundId, '59 minutes');
    expect(await env.sweep()).toMatchObject({ openRefunds: 0, failed: 0 });
    await decide(env, ref, 'succeeded');
    await env.age('refund', ref.refundId, '61 minutes');
    expect(await env.sweep()).toMatchObject({ openRefunds: 1, failed: 0 });
    expect(await env.orders.execute('refund', ref)).toEqual({ kind: 'refunded' });
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 5000']);
    expect(await payments.story(paid.intentId)).toEqual([...PAID, 'intent.refunded REFUNDED']);
  });
});

describe('a refund that fails after it had succeeded', () => {
  test('changes the payment from REFUNDED back to SUCCESS and frees its amount [D-40, D-50]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid);
    expect(await env.orders.execute('refund', ref)).toEqual({ kind: 'refunded' });
    await decide(env, ref, 'failed');
    // Wakes the refund's workflow, as an event of the gateway does.
    await env.orders.recheck('refund', ref);
    await expect.poll(async () => (await payments.refundRow(ref)).state).toBe('REFUSED');
    expect(await payments.refundRow(ref)).toMatchObject({ refundedAt: null });
    expect(await intentOf(payments, paid)).toEqual(['SUCCESS', 0]);
    const next = await payments.refund(paid, 1_000);
    expect(await env.orders.execute('refund', next.ref)).toEqual({ kind: 'refunded' });
    expect(await ask(env, ref)).toMatchObject({ kind: 'refused' });
    expect(await payments.story(paid.intentId)).toEqual([
      ...PAID,
      'intent.refunded REFUNDED',
      'intent.refund_failed SUCCESS',
      'intent.refunded PARTIALLY_REFUNDED',
    ]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1000']);
  });

  test('leaves the payment PARTIALLY_REFUNDED when another refund of the payment succeeded [D-40]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.paid();
    const first = await payments.refund(paid, 2_000);
    const second = await payments.refund(paid, 3_000);
    for (const { ref } of [first, second]) {
      expect(await ask(env, ref)).toEqual({ kind: 'refunded' });
    }
    await decide(env, first.ref, 'failed');
    expect(await Promise.all([1, 2, 3].map(() => ask(env, first.ref)))).toEqual(
      Array.from({ length: 3 }, () => expect.objectContaining({ kind: 'refused' })),
    );
    expect(await intentOf(payments, paid)).toEqual(['PARTIALLY_REFUNDED', 3_000]);
    expect(await payments.story(paid.intentId)).toEqual([
      ...PAID,
      'intent.refunded PARTIALLY_REFUNDED',
      'intent.refunded REFUNDED',
      'intent.refund_failed PARTIALLY_REFUNDED',
    ]);
  });

  test('is looked up again when the gateway does not answer [D-40]', async ({ env, payments }) => {
    const paid = await payments.paid();
    const { ref } = await payments.refund(paid);
    expect(await ask(env, ref)).toEqual({ kind: 'refunded' });
    await decide(env, ref, 'failed');
    await env.control('POST', '/control/faults', {
      operation: 'refund_lookup',
      fault: 'lose_answer',
      count: 1_000,
    });
    expect(await ask(env, ref)).toEqual({ kind: 'pending' });
    expect(await intentOf(payments, paid)).toEqual(['REFUNDED', 5_000]);
    await env.control('DELETE', '/control/faults');
    expect(await ask(env, ref)).toMatchObject({ kind: 'refused' });
    expect(await intentOf(payments, paid)).toEqual(['SUCCESS', 0]);
  });
});
