import type { WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { PAYMENT_WORKFLOW, paymentWorkflowId } from '../../workflows/payment/messages.ts';
import { REFUND_WORKFLOW, refundWorkflowId } from '../../workflows/refund/messages.ts';
import { paymentsIn } from '../support/payments.ts';
import type { Payments } from '../support/payments.ts';
import { startTimeSkippingServer } from '../support/temporal-servers.ts';
import { createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

let env: TestWorkflowEnvironment;
let world: World;
let payments: Payments;

/** What the next calls come to instead of the real thing: each is used once, in order. */
type Fate = 'pending' | 'dies';
const fates: Fate[] = [];
/** How often anything was asked. */
let asked = 0;

beforeAll(async () => {
  env = await startTimeSkippingServer();
  world = await createWorld(env, { wrap: fated });
  payments = paymentsIn(world);
});

afterAll(async () => {
  await world.close();
  await env.teardown();
});

beforeEach(() => {
  fates.length = 0;
  asked = 0;
});

function fated(activities: Activities): Activities {
  const meet = async <T>(work: () => Promise<T>): Promise<T | { kind: 'pending' }> => {
    asked += 1;
    const fate = fates.shift();
    if (fate === 'dies') throw new Error('the process died');
    return fate === 'pending' ? { kind: 'pending' } : work();
  };
  return {
    ...activities,
    chargePayment: (input) => meet(() => activities.chargePayment(input)),
    refundPayment: (input) => meet(() => activities.refundPayment(input)),
  };
}

const start = (type: string, workflowId: string, input: object) =>
  env.client.workflow.start(type, {
    workflowId,
    taskQueue: `${world.taskQueuePrefix}billing`,
    args: [{ ...input, lookups: 0 }],
  });

async function startCharge() {
  const ref = await payments.tokenised();
  const workflowId = paymentWorkflowId(ref.intentId);
  const handle = await start(PAYMENT_WORKFLOW, workflowId, { ...ref, token: null });
  return { ref, handle };
}

/** Seconds of every timer of a run, in order, and what it was for. */
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

const times = (count: number, fate: Fate): Fate[] => Array.from({ length: count }, () => fate);

describe('a payment whose outcome is not known', () => {
  test('is asked about after 10 s, 30 s, 1, 5, 15 and then every 60 minutes [design §4]', async () => {
    fates.push(...times(8, 'pending'));
    const { ref, handle } = await startCharge();
    expect(await handle.result()).toEqual({
      paymentToken: null,
      outcome: { kind: 'succeeded' },
    });
    expect(await timers(handle)).toEqual([
      '10 s ask the gateway again',
      '30 s ask the gateway again',
      '60 s ask the gateway again',
      '300 s ask the gateway again',
      '900 s ask the gateway again',
      '3600 s ask the gateway again',
      '3600 s ask the gateway again',
      '3600 s ask the gateway again',
    ]);
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });

  test('goes on in a new run when its history is long, with the same wait [design §3]', async () => {
    fates.push(...times(60, 'pending'));
    const { ref, handle } = await startCharge();
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(asked).toBe(61);
    const last = env.client.workflow.getHandle(paymentWorkflowId(ref.intentId));
    expect((await last.describe()).runId).not.toBe(handle.firstExecutionRunId);
    expect(new Set(await timers(last))).toEqual(new Set(['3600 s ask the gateway again']));
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });
});

describe('a payment whose steps fail', () => {
  test('is tried again 10 s after an activity gave up, and never fails [design §3]', async () => {
    // An activity is tried five times before the workflow hears of it.
    fates.push(...times(10, 'dies'));
    const { ref, handle } = await startCharge();
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(asked).toBe(11);
    expect(await timers(handle)).toEqual(['10 s try again', '10 s try again']);
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });

  test('is not lost to a request to cancel its workflow [design §3]', async () => {
    fates.push('dies', 'pending');
    const { ref, handle } = await startCharge();
    await handle.cancel();
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
  });
});

describe('a refund', () => {
  test('that is not decided is sent again by the same ladder [D-§7]', async () => {
    const paid = await payments.tokenised();
    const input = { ...paid, token: null, nowAt: Date.now() };
    expect(await world.activities.chargePayment(input)).toEqual({ kind: 'succeeded' });
    fates.push(...times(3, 'pending'));
    const { ref } = await payments.refund(paid, 1_200);
    const handle = await start(REFUND_WORKFLOW, refundWorkflowId(ref.refundId), ref);
    expect(await handle.result()).toEqual({ outcome: { kind: 'refunded' } });
    expect(await timers(handle)).toEqual([
      '10 s ask the gateway again',
      '30 s ask the gateway again',
      '60 s ask the gateway again',
    ]);
    expect(await payments.book(paid)).toEqual(['succeeded 5000 x1 back 1200']);
  });
});
