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
import { onDevServer } from '../support/environment.ts';
import { paymentsIn } from '../support/payments.ts';
import type { World } from '../support/world.ts';
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

/** Paths with failures of activities, of the gateway or of a workflow. */

/** The number of failures that are left for each activity. */
const failures: Partial<Record<keyof Activities, number>> = {};

const record = recorderOn(onDevServer({ wrap: withFailures }));

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

const fault = (world: World, operation: string, effect = 'done') =>
  world.control('POST', '/control/faults', {
    operation,
    effect,
    fault: 'error_500',
    count: 1_000,
    match: {},
  });

const keepEnded = async (world: World, path: string, ref: SubscriptionRef): Promise<number> => {
  await workflowOf(world, ref).result();
  return keepSubscription(world, path, ref);
};

describe('record', () => {
  record('gave-up', async ({ world }) => {
    const { clock, ref } = await begin(world, { cycleCount: 3 });
    await pay(world, ref);
    // One more failure than the activity has attempts.
    failures.record = 7;
    await workflowOf(world, ref).signal('pause');
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('PAUSED'), 60_000);
    failures.chargeAttempt = 6;
    failures.loadSubscription = 7;
    failures.deliverPending = 3;
    const newNextPaymentAt = Date.parse('2027-02-20T00:00:00Z');
    await send(world, ref, { kind: 'unpause', newNextPaymentAt });
    await world.advance(clock, '2027-02-21T00:00:00Z');
    await send(world, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(world, 'gave-up', ref)).toBeGreaterThan(0);
  });

  record('restarted', async ({ world }) => {
    const { clock, ref } = await begin(world, { cycleCount: 2 });
    await pay(world, ref);
    await workflowOf(world, ref).terminate('to be started again');
    await world.workflows.recheck(ref);
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(world, 'restarted', ref)).toBe(1);
  });

  record('cancelled-in-doubt', async ({ world }) => {
    const { ref } = await unpaid(world);
    await fault(world, 'charge', 'none');
    await fault(world, 'lookup');
    await send(world, ref, { kind: 'manualRetry' });
    await send(world, ref, { kind: 'cancel', reason: 'cancelled' });
    await world.control('DELETE', '/control/faults');
    expect(await keepEnded(world, 'cancelled-in-doubt', ref)).toBeGreaterThan(0);
  });

  record('refund-unknown', async ({ world }) => {
    const payments = paymentsIn(world);
    const { ref } = await payments.refund(await payments.paid());
    await fault(world, 'refund');
    const refunding = world.payments.refund(ref);
    await vi.waitFor(async () => {
      expect((await payments.refundRow(ref)).state).toBe('UNKNOWN');
    }, 20_000);
    await world.control('DELETE', '/control/faults');
    await refunding;
    expect(await keep(world, 'refund-unknown', refundWorkflowId(ref.refundId))).toBe(1);
  });

  record('refund-review', async ({ world }) => {
    const payments = paymentsIn(world);
    const { ref } = await payments.refund(await payments.paid());
    await world.db.update(refunds).set({ gatewayChargeId: '' }).where(eq(refunds.id, ref.refundId));
    const refunding = world.payments.refund(ref);
    await vi.waitFor(async () => {
      expect((await payments.refundRow(ref)).state).toBe('REVIEW');
    }, 20_000);
    await decideReview(world.db, ref.refundId, {
      outcome: 'not_refunded',
      gatewayId: null,
      code: null,
      by: 'Ada',
      note: 'nothing there',
    });
    await world.payments.wakeRefund(ref);
    await refunding;
    expect(await keep(world, 'refund-review', refundWorkflowId(ref.refundId))).toBe(1);
  });

  record('setup-method-unknown', async ({ world }) => {
    const payments = paymentsIn(world);
    const { customerId: _, ...ref } = await payments.setup();
    await fault(world, 'methods');
    const saving = world.payments.saveMethod({ ...ref, ...(await payments.card()) });
    const handle = world.client.workflow.getHandle(setupMethodWorkflowId(ref.setupMethodId));
    await vi.waitFor(async () => {
      expect((await handle.describe()).historyLength).toBeGreaterThan(10);
    }, 40_000);
    await world.control('DELETE', '/control/faults');
    await saving;
    await handle.result();
    expect(await keep(world, 'setup-method-unknown', handle.workflowId)).toBe(1);
  });
});
