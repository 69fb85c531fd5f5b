import type { WorkflowHandle } from '@temporalio/client';
import { beforeEach, describe, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { refundKey } from '../../domain/refund.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import type { Payments } from '../support/payments.ts';
import type { TimeSkippingEnvironment } from '../support/test-environment.ts';

/** Replaces the outcome of a call of chargePayment or refundPayment. Each of the `faults` is used once, in order. */
type Fault = 'pending' | 'fails';
const faults: Fault[] = [];
/** The number of calls of these two activities so far. */
let calls = 0;
/** Runs before each call of refundPayment, with the workflow's time. */
let beforeRefund: (nowAt: number) => Promise<unknown> = async () => undefined;

const test = onTimeSkippingServerWith({ wrap: withFaults });

beforeEach(() => {
  faults.length = 0;
  calls = 0;
  beforeRefund = async () => undefined;
});

function withFaults(activities: Activities): Activities {
  const call = async <T>(work: () => Promise<T>): Promise<T | { kind: 'pending' }> => {
    calls += 1;
    const fault = faults.shift();
    if (fault === 'fails') throw new Error('the process died');
    return fault === 'pending' ? { kind: 'pending' } : work();
  };
  return {
    ...activities,
    chargePayment: (input) => call(() => activities.chargePayment(input)),
    refundPayment: async (input) => {
      await beforeRefund(input.nowAt);
      return call(() => activities.refundPayment(input));
    },
  };
}

const start = (env: TimeSkippingEnvironment, type: string, workflowId: string, order: object) =>
  env.client.workflow.start(type, {
    workflowId,
    taskQueue: `${env.taskQueuePrefix}billing`,
    args: [{ order, lookups: 0 }],
  });

async function startCharge(env: TimeSkippingEnvironment, payments: Payments) {
  const ref = await payments.tokenised();
  const workflowId = orderWorkflowId('payment', ref.intentId);
  const handle = await start(env, 'payment', workflowId, { ...ref, token: null });
  return { ref, handle };
}

/** Seconds and summary of every timer of a run, in order. */
async function timers(handle: WorkflowHandle): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap((event) => {
    const timer = event.timerStartedEventAttributes;
    if (!timer) return [];
    const summary = event.userMetadata?.summary?.data;
    const text = summary ? (JSON.parse(Buffer.from(summary).toString()) as string) : '';
    return [`${Number(timer.startToFireTimeout?.seconds)} s ${text}`];
  });
}

/** Milliseconds of every timer after a failed activity, in order. */
async function waitsAfterFailures(handle: WorkflowHandle): Promise<number[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap((event) => {
    const { startToFireTimeout } = event.timerStartedEventAttributes ?? {};
    const summary = Buffer.from(event.userMetadata?.summary?.data ?? []).toString();
    if (!startToFireTimeout || summary !== '"try again"') return [];
    const { seconds, nanos } = startToFireTimeout;
    return [Number(seconds) * 1_000 + (nanos ?? 0) / 1_000_000];
  });
}

const times = (count: number, fault: Fault): Fault[] => Array.from({ length: count }, () => fault);

describe('a payment of unknown outcome', () => {
  test('is looked up after 10 s, 30 s and 1 min, then at most 290 s later on the first day', async ({
    env,
    payments,
  }) => {
    faults.push(...times(8, 'pending'));
    const { ref, handle } = await startCharge(env, payments);
    expect(await handle.result()).toEqual({
      paymentToken: null,
      outcome: { kind: 'succeeded' },
    });
    expect(await timers(handle)).toEqual([
      '10 s ask the gateway again',
      '30 s ask the gateway again',
      '60 s ask the gateway again',
      expect.stringMatching(/^([12]?\d?\d) s ask the gateway again$/),
      ...Array.from({ length: 4 }, () => expect.stringMatching(/^(28\d|290) s ask/)),
    ]);
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });

  test('keeps its backoff when its workflow continues as new because of a long history', async ({
    env,
    payments,
  }) => {
    faults.push(...times(320, 'pending'));
    const { ref, handle } = await startCharge(env, payments);
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(calls).toBe(321);
    const last = env.client.workflow.getHandle(orderWorkflowId('payment', ref.intentId));
    expect((await last.describe()).runId).not.toBe(handle.firstExecutionRunId);
    // The look-ups after the first day are daily.
    expect((await timers(last)).slice(-7)).toEqual(
      Array.from({ length: 7 }, () => '86400 s ask the gateway again'),
    );
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });
});

describe('a payment with failing activities', () => {
  test('does not fail, but is tried again after waits that grow to 30 s', async ({
    env,
    payments,
  }) => {
    // A step has one local and five queued attempts before the workflow sees a failure.
    faults.push(...times(30, 'fails'), 'pending', ...times(6, 'fails'));
    const { ref, handle } = await startCharge(env, payments);
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(calls).toBe(38);
    const waits = await waitsAfterFailures(handle);
    // A wait lies between half of its limit and the limit. An answer of the gateway resets the limits.
    const limits = [10_000, 20_000, 30_000, 30_000, 30_000, 10_000];
    expect(waits.map((ms, n) => ms >= (limits[n] ?? 0) / 2 && ms <= (limits[n] ?? 0))).toEqual(
      limits.map(() => true),
    );
    // The third to fifth waits differ, because each has its own jitter.
    expect(new Set(waits.slice(2, 5)).size).toBe(3);
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });

  test('completes after a cancellation request to its workflow', async ({ env, payments }) => {
    faults.push('fails', 'pending');
    const { ref, handle } = await startCharge(env, payments);
    await handle.cancel();
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });
});

describe('a refund', () => {
  test('is tried again after 10 s, 30 s and 60 s while its outcome is unknown [D-§7]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.tokenised();
    const input = { ...paid, token: null, nowAt: Date.now() };
    expect(await env.activities.chargePayment(input)).toEqual({ kind: 'succeeded' });
    faults.push(...times(3, 'pending'));
    const { ref } = await payments.refund(paid, 1_200);
    const handle = await start(env, 'refund', orderWorkflowId('refund', ref.refundId), ref);
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'refunded' } });
    expect(await timers(handle)).toEqual([
      '10 s ask the gateway again',
      '30 s ask the gateway again',
      '60 s ask the gateway again',
    ]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1200']);
  });

  test('is looked up every 5 min for a day and then daily while the gateway has not decided it [D-§7]', async ({
    env,
    payments,
  }) => {
    const paid = await payments.tokenised();
    const input = { ...paid, token: null, nowAt: Date.now() };
    expect(await env.activities.chargePayment(input)).toEqual({ kind: 'succeeded' });
    const { ref } = await payments.refund(paid, 1_200);
    const pending = { operation: 'refund', fault: 'pending', count: 1 };
    await env.control('POST', '/control/faults', pending);
    const decidedAt = (await env.server.currentTimeMs()) + 3 * 24 * 3_600_000;
    const decision = { key: refundKey(ref.refundId), status: 'succeeded' };
    beforeRefund = async (nowAt) =>
      nowAt >= decidedAt && env.control('POST', '/control/refunds', decision);
    const handle = await start(env, 'refund', orderWorkflowId('refund', ref.refundId), ref);
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'refunded' } });
    const last = env.client.workflow.getHandle(orderWorkflowId('refund', ref.refundId));
    expect((await timers(last)).slice(-3)).toEqual([
      expect.stringMatching(/^(28\d|290) s ask/),
      '86400 s ask the gateway again',
      '86400 s ask the gateway again',
    ]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1200']);
    expect(await payments.story(paid.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
      'intent.refunded PARTIALLY_REFUNDED',
    ]);
  });
});
