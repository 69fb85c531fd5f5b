import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { merchants } from '../../db/schema/merchants.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import { onDevServer } from '../support/environment.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import {
  begin,
  decline,
  keepSubscription,
  pay,
  recorderOn,
  send,
  START,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records histories in which activities run as local activities first, and a renewal does not end the run.
 * `second-shape` names runs that write no search attribute after a renewal; the histories `one-task-*` are of runs of
 * an earlier release.
 */

const record = recorderOn(onDevServer);

describe('record', () => {
  record('second-shape-to-end', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 4 });
    await pay(env, ref);
    await env.advance(clock, '2027-04-01T00:00:00Z');
    await env.advance(clock, '2027-06-01T00:00:00Z');
    expect(await keepSubscription(env, 'second-shape-to-end', ref)).toBe(1);
  });

  record('second-shape-asleep', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now(), terms: { interval: 'DAY' } });
    await pay(env, ref);
    await send(env, ref, { kind: 'edit', newAmountMinor: 2_500 });
    expect(await keepSubscription(env, 'second-shape-asleep', ref)).toBe(1);
  });

  record('second-shape-trial', async ({ env }) => {
    const { clock, ref } = await begin(env, {
      cycleCount: 2,
      trial: { interval: 'DAY', count: 7 },
    });
    await pay(env, ref);
    await env.advance(clock, '2027-02-10T00:00:00Z');
    expect(await keepSubscription(env, 'second-shape-trial', ref)).toBe(1);
  });

  record('second-shape-dunning', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'manualRetry' });
    await env.advance(clock, '2027-02-28T05:00:00Z');
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(env, 'second-shape-dunning', ref)).toBe(1);
  });

  record('second-shape-commands', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await send(env, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await send(env, ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(env, ref, { kind: 'unpause', newNextPaymentAt });
    await env.advance(clock, '2027-04-16T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepSubscription(env, 'second-shape-commands', ref)).toBe(1);
  });

  record('second-shape-command-after-advance', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    await env.stopWorkers();
    await env.sendClock(clock, Date.parse('2027-03-15T00:00:00Z'));
    const paused = send(env, ref, { kind: 'pause' });
    await env.startWorkers();
    await paused;
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepSubscription(env, 'second-shape-command-after-advance', ref)).toBe(1);
  });

  record('second-shape-over-budget', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 3_500,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(env, 'second-shape-over-budget', ref)).toBe(1);
  });

  record('second-shape-continued', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    const workflow = workflowOf(env, ref);
    const { runId } = await workflow.describe();
    await lengthenHistory(workflow, START, 120);
    await env.advance(clock, '2027-03-01T00:00:00Z');
    await vi.waitFor(async () => expect((await workflow.describe()).runId).not.toBe(runId), 10_000);
    await env.advance(clock, '2027-05-01T00:00:00Z');
    expect(await keepSubscription(env, 'second-shape-continued', ref)).toBeGreaterThan(1);
  });

  // The history `second-shape-new-card-keeps-plan` is of a release in which a new card kept the count of retries.
  record('second-shape-new-card-restarts-plan', async ({ env }) => {
    const { clock, ref } = await quietlyDeclined(env);
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await env.advance(clock, '2027-03-15T00:00:00Z');
    expect(await keepSubscription(env, 'second-shape-new-card-restarts-plan', ref)).toBe(1);
  });
});

/** Creates an ACTIVE subscription whose second cycle was declined twice and has two retries left. */
async function quietlyDeclined(env: TestEnvironment) {
  const retryPlan: RetryPlan = { ...DEFAULT_RETRY_PLAN, unpaidFrom: 'retries_exhausted' };
  await env.db
    .update(merchants)
    .set({ settings: { retryPlan } })
    .where(eq(merchants.id, env.merchantId));
  const { clock, ref } = await begin(env, { cycleCount: 3 });
  await pay(env, ref);
  await decline(env, ref, 3);
  await env.advance(clock, '2027-02-28T04:00:00Z');
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', owed: { retriesUsed: 2 } });
  return { clock, ref };
}
