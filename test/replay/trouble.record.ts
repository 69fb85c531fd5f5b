import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { decideReview } from '../../db/repositories/payments/reviews.ts';
import { refunds } from '../../db/schema/payments.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { orderWorkflowId } from '../../workflows/orders/messages.ts';
import { recheck } from '../../workflows/subscription/messages.ts';
import { onDevServerWith } from '../support/environment.ts';
import { paymentsIn } from '../support/payments.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import {
  begin,
  isLongerThan,
  keep,
  keepEnded,
  keepSubscription,
  pay,
  recorderOn,
  send,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records histories with failures of activities, of the gateway, of a workflow or of the database. In `gave-up`
 * activities fail in all their attempts. In `held` the row is restored from a backup.
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

describe('record', () => {
  record('gave-up', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    // The activity has seven attempts, one of them local, so the workflow sees two failures in a row.
    failures.record = 14;
    await workflowOf(env, ref).signal('pause');
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('PAUSED'), 90_000);
    failures.chargeAttempt = 6;
    failures.loadSubscription = 7;
    const newNextPaymentAt = Date.parse('2027-02-20T00:00:00Z');
    await send(env, ref, { kind: 'unpause', newNextPaymentAt });
    await env.advance(clock, '2027-02-21T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'gave-up', ref)).toBeGreaterThan(0);
  });

  record('unknown-outcome', async ({ env }) => {
    const { ref } = await unpaid(env);
    await fault(env, 'charge', 'none');
    await fault(env, 'lookup');
    await send(env, ref, { kind: 'manualRetry' });
    await env.control('DELETE', '/control/faults');
    await vi.waitFor(async () => expect((await env.state(ref)).openAttempt).toBeNull(), 40_000);
    expect(await keepSubscription(env, 'unknown-outcome', ref)).toBeGreaterThan(0);
  });

  record('held', async ({ env }) => {
    const { ref } = await begin(env, { cycleCount: 2 });
    const isRow = eq(subscriptions.id, ref.subscriptionId);
    const row = async () => (await env.db.select().from(subscriptions).where(isRow))[0]!;
    const restore = ({ state, version, lastTransitionId }: typeof subscriptions.$inferSelect) =>
      env.db.update(subscriptions).set({ state, version, lastTransitionId }).where(isRow);
    const backup = await row();
    await pay(env, ref);
    const latest = await row();
    const handle = workflowOf(env, ref);
    const { historyLength } = await handle.describe();
    await restore(backup);
    await handle.signal(recheck);
    await isLongerThan(handle, historyLength + 4);
    await restore(latest);
    await handle.signal(recheck);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'held', ref)).toBeGreaterThan(0);
  });

  record('restarted', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await workflowOf(env, ref).terminate('to be started again');
    await env.workflows.recheck(ref);
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'restarted', ref)).toBe(1);
  });

  record('cancelled-with-unknown-outcome', async ({ env }) => {
    const { ref } = await unpaid(env);
    await fault(env, 'charge', 'none');
    await fault(env, 'lookup');
    await send(env, ref, { kind: 'manualRetry' });
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    await env.control('DELETE', '/control/faults');
    expect(await keepEnded(env, 'cancelled-with-unknown-outcome', ref)).toBeGreaterThan(0);
  });

  record('rechecked', async ({ env }) => {
    const { ref } = await unpaid(env);
    await fault(env, 'charge');
    await fault(env, 'lookup');
    await send(env, ref, { kind: 'manualRetry' });
    // The gateway still answers no look-up, so the schedule of the look-ups does not change.
    await workflowOf(env, ref).signal(recheck);
    await isLongerThan(workflowOf(env, ref), 37);
    await env.control('DELETE', '/control/faults');
    await workflowOf(env, ref).signal(recheck);
    await vi.waitFor(async () => expect((await env.state(ref)).status).toBe('ACTIVE'), 20_000);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'rechecked', ref)).toBe(1);
  });

  record('refund-unknown', async ({ env }) => {
    const payments = paymentsIn(env);
    const { ref } = await payments.refund(await payments.paid());
    await fault(env, 'refund');
    const refunding = env.orders.execute('refund', ref);
    await vi.waitFor(async () => {
      expect((await payments.refundRow(ref)).state).toBe('UNKNOWN');
    }, 20_000);
    await env.control('DELETE', '/control/faults');
    await refunding;
    expect(await keep(env, 'refund-unknown', orderWorkflowId('refund', ref.refundId))).toBe(1);
  });

  record('refund-review', async ({ env }) => {
    const payments = paymentsIn(env);
    const { ref } = await payments.refund(await payments.paid());
    await env.db.update(refunds).set({ gatewayChargeId: '' }).where(eq(refunds.id, ref.refundId));
    const refunding = env.orders.execute('refund', ref);
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
    await env.orders.recheck('refund', ref);
    await refunding;
    expect(await keep(env, 'refund-review', orderWorkflowId('refund', ref.refundId))).toBe(1);
  });

  record('setup-method-unknown', async ({ env }) => {
    const payments = paymentsIn(env);
    const { customerId: _, ...ref } = await payments.setup();
    await fault(env, 'methods');
    const saving = env.orders.execute('setupMethod', { ...ref, token: await payments.card() });
    const handle = env.client.workflow.getHandle(orderWorkflowId('setupMethod', ref.setupMethodId));
    await isLongerThan(handle, 10, 40_000);
    await env.control('DELETE', '/control/faults');
    await saving;
    await handle.result();
    expect(await keep(env, 'setup-method-unknown', handle.workflowId)).toBe(1);
  });
});
