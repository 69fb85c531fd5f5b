import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { refunds } from '../../db/schema/refunds.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import {
  refundWorkflowId,
  setupMethodWorkflowId,
} from '../../workflows/one-off-orders/messages.ts';
import { poke } from '../../workflows/subscription/messages.ts';
import { onDevServerWith } from '../support/environment.ts';
import { paymentsIn } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import {
  begin,
  keep,
  keepSubscription,
  pay,
  recorderOn,
  send,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records histories with failures of activities, of the gateway or of a workflow. In `gave-up` and `growing-backoff` an
 * activity fails in all its attempts. In `restarted` the workflow is terminated and started again. In
 * `cancelled-in-doubt` a cancel comes while the outcome of a charge is unknown.
 */

/** The number of calls of each activity that still fail. */
const failures: Partial<Record<keyof Activities, number>> = {};

const record = recorderOn(onDevServerWith({ wrap: withFailures }));

function withFailures(activities: Activities): Activities {
  const entries = Object.entries(activities).map(([name, activity]) => [
    name,
    async (input: never) => {
      const left = failures[name as keyof Activities] ?? 0;
      failures[name as keyof Activities] = left - 1;
      if (left > 0) throw new Error('the connection broke');
      return (activity as (input: never) => Promise<unknown>)(input);
    },
  ]);
  return Object.fromEntries(entries) as Activities;
}

const fault = (env: TestEnvironment, operation: string, effect = 'done') =>
  env.control('POST', '/control/faults', {
    operation,
    effect,
    fault: 'error_500',
    count: 1_000,
    match: {},
  });

const keepEnded = async (
  env: TestEnvironment,
  path: string,
  ref: SubscriptionRef,
): Promise<number> => {
  await workflowOf(env, ref).result();
  return keepSubscription(env, path, ref);
};

describe('record', () => {
  record('gave-up', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    // As many failures as the activity has attempts: one local attempt and six on the task queue.
    failures.record = 7;
    await workflowOf(env, ref).signal('pause');
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('PAUSED'), 60_000);
    failures.chargeAttempt = 6;
    failures.loadSubscription = 7;
    const newNextPaymentAt = Date.parse('2027-02-20T00:00:00Z');
    await send(env, ref, { kind: 'unpause', newNextPaymentAt });
    await env.advance(clock, '2027-02-21T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'gave-up', ref)).toBeGreaterThan(0);
  });

  record('restarted', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await workflowOf(env, ref).terminate('to be started again');
    await env.workflows.recheck(ref);
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'restarted', ref)).toBe(1);
  });

  record('cancelled-in-doubt', async ({ env }) => {
    const { ref } = await unpaid(env);
    await fault(env, 'charge', 'none');
    await fault(env, 'lookup');
    await send(env, ref, { kind: 'manualRetry' });
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    await env.control('DELETE', '/control/faults');
    expect(await keepEnded(env, 'cancelled-in-doubt', ref)).toBeGreaterThan(0);
  });

  record('growing-backoff', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    // The activity has seven attempts in all, so the workflow sees two failures in a row.
    failures.record = 14;
    await workflowOf(env, ref).signal('pause');
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('PAUSED'), 90_000);
    await env.advance(clock, '2027-02-21T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'growing-backoff', ref)).toBeGreaterThan(0);
  });

  record('rechecked', async ({ env }) => {
    const { ref } = await unpaid(env);
    await fault(env, 'charge');
    await fault(env, 'lookup');
    await send(env, ref, { kind: 'manualRetry' });
    // The gateway still answers no look-up, so the schedule of the look-ups does not change.
    await workflowOf(env, ref).signal(poke);
    await vi.waitFor(async () => {
      const { historyLength } = await workflowOf(env, ref).describe();
      expect(historyLength).toBeGreaterThan(37);
    }, 20_000);
    await env.control('DELETE', '/control/faults');
    await workflowOf(env, ref).signal(poke);
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('ACTIVE'), 20_000);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'rechecked', ref)).toBe(1);
  });

  record('refund-unknown', async ({ env }) => {
    const payments = paymentsIn(env);
    const { ref } = await payments.refund(await payments.paid());
    await fault(env, 'refund');
    const refunding = env.payments.refund(ref);
    await vi.waitFor(async () => {
      expect((await payments.refundRow(ref)).state).toBe('UNKNOWN');
    }, 20_000);
    await env.control('DELETE', '/control/faults');
    await refunding;
    expect(await keep(env, 'refund-unknown', refundWorkflowId(ref.refundId))).toBe(1);
  });

  record('refund-review', async ({ env }) => {
    const payments = paymentsIn(env);
    const { ref } = await payments.refund(await payments.paid());
    await env.db.update(refunds).set({ gatewayChargeId: '' }).where(eq(refunds.id, ref.refundId));
    const refunding = env.payments.refund(ref);
    await vi.waitFor(async () => {
      expect((await payments.refundRow(ref)).state).toBe('REVIEW');
    }, 20_000);
    await decideReview(env.db, ref.refundId, {
      outcome: 'not_refunded',
      gatewayId: null,
      code: null,
      by: 'Ada',
      note: 'nothing there',
    });
    await env.payments.wakeRefund(ref);
    await refunding;
    expect(await keep(env, 'refund-review', refundWorkflowId(ref.refundId))).toBe(1);
  });

  record('setup-method-unknown', async ({ env }) => {
    const payments = paymentsIn(env);
    const { customerId: _, ...ref } = await payments.setup();
    await fault(env, 'methods');
    const saving = env.payments.saveMethod({ ...ref, ...(await payments.card()) });
    const handle = env.client.workflow.getHandle(setupMethodWorkflowId(ref.setupMethodId));
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(10);
    }, 40_000);
    await env.control('DELETE', '/control/faults');
    await saving;
    await handle.result();
    expect(await keep(env, 'setup-method-unknown', handle.workflowId)).toBe(1);
  });
});
