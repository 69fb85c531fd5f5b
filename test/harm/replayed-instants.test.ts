import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { paymentAttempts } from '../../db/schema/payments.ts';
import type { SubscriptionRef, SubscriptionState } from '../../domain/subscription/state.ts';
import {
  stateQuery,
  SUBSCRIPTION_WORKFLOW,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import { command } from '../support/command.ts';
import { onDevServer as test } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * A worker process stops inside a workflow task. Temporal schedules the task again, and the same process completes it.
 * The history has only the second start of the task. A later replay therefore computes the run's state with later
 * instants than the local activity has recorded in the row.
 */

const LATER_MS = 10_232;
const HOUR_MS = 3_600_000;

/** Replaces the run with one that has `state`, as a replay makes it: the version of the row with other instants. */
async function replayAs(env: TestEnvironment, ref: SubscriptionRef, state: SubscriptionState) {
  const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await handle.terminate('replayed by another worker');
  return env.client.workflow.start(SUBSCRIPTION_WORKFLOW, {
    workflowId: handle.workflowId,
    taskQueue: `${env.taskQueuePrefix}billing`,
    args: [{ state, entries: [], clock: null, deliver: false, needsResync: false }],
  });
}

describe('a run that was replayed with other instants than its row has', () => {
  test('continues a declined cycle from the instants of the row [D-30, D-40]', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() - 2 * HOUR_MS });
    await payCheckout(env, ref);
    const { subscriptionId } = ref;
    await env.control('POST', '/control/declines', {
      subscriptionId,
      code: 'insufficient_funds',
      count: 2,
    });
    await env.execute(ref, command('edit', { newNextPaymentAt: Date.now() + 500 }));
    await eventually(async () => expect((await env.state(ref)).status).toBe('UNPAID'));
    const row = await env.state(ref);
    const startedAt = row.latest.at;
    expect(row.owed).toMatchObject({
      automaticAttemptsAt: [startedAt],
      nextRetryAt: startedAt + 4 * HOUR_MS,
    });

    const run = await replayAs(env, ref, {
      ...row,
      latest: { ...row.latest, at: startedAt + LATER_MS },
      owed: row.owed && {
        ...row.owed,
        automaticAttemptsAt: [startedAt + LATER_MS],
        nextRetryAt: startedAt + LATER_MS + 4 * HOUR_MS,
      },
    });
    const answer = await env.execute(ref, command('manualRetry'));
    expect(answer).toMatchObject({ kind: 'result', result: { success: false, status: 'UNPAID' } });
    const after = await env.state(ref);
    expect(after.version).toBe(row.version + 2);
    expect(after.owed).toEqual({ ...row.owed, attempts: 2 });
    expect((await run.query(stateQuery)).owed).toEqual(after.owed);
    const attempts = await env.db
      .select({ trigger: paymentAttempts.trigger, at: paymentAttempts.createdAt })
      .from(paymentAttempts)
      .where(eq(paymentAttempts.intentId, row.owed?.intentId ?? ''))
      .orderBy(paymentAttempts.attemptNumber);
    expect(attempts).toMatchObject([
      { trigger: 'scheduled', at: startedAt },
      { trigger: 'manual_retry' },
    ]);
  });

  test('keeps the calendar of the row when a command changes it [D-05, D-40]', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await payCheckout(env, ref);
    const row = await env.state(ref);
    const run = await replayAs(env, ref, {
      ...row,
      anchorAt: Number(row.anchorAt) + LATER_MS,
      currentPeriodEndAt: Number(row.currentPeriodEndAt) + LATER_MS,
      latest: { ...row.latest, at: row.latest.at + LATER_MS },
    });
    expect(await env.execute(ref, command('edit', { newAmountMinor: 2_500 }))).toMatchObject({
      kind: 'result',
    });
    const after = await env.state(ref);
    expect([after.version, after.terms.amountMinor]).toEqual([row.version + 1, 2_500]);
    expect([after.anchorAt, after.currentPeriodEndAt]).toEqual([
      row.anchorAt,
      row.currentPeriodEndAt,
    ]);
    expect(await run.query(stateQuery)).toMatchObject({
      version: after.version,
      anchorAt: row.anchorAt,
    });
    expect(await env.book(ref)).toHaveLength(1);
  });
});
