import { describe, expect, vi } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { onDevServer } from '../support/environment.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import {
  begin,
  decline,
  isFollowed,
  isLongerThan,
  keepEnded,
  keepSubscription,
  pay,
  recorderOn,
  send,
  START,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records histories of subscriptions without failures of activities or of the gateway. In a path whose name contains
 * `asleep`, the run waits in real time until a command or a timer ends the wait.
 */

const record = recorderOn(onDevServer);

const reaches = (env: TestEnvironment, ref: SubscriptionRef, status: string) =>
  vi.waitFor(async () => expect((await env.state(ref)).status).toBe(status), 20_000);

describe('record', () => {
  record('checkout-then-asleep', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now(), terms: { interval: 'DAY' } });
    const { runId } = await workflowOf(env, ref).describe();
    await pay(env, ref);
    // The run leaves the checkout queue 5 to 30 s later.
    await isFollowed(workflowOf(env, ref), runId);
    await isLongerThan(workflowOf(env, ref), 4);
    expect(await keepSubscription(env, 'checkout-then-asleep', ref)).toBe(2);
  });

  record('checkout-declined', async ({ env }) => {
    const { ref } = await begin(env, { cycleCount: 1 });
    await pay(env, ref, '4242424242424241');
    await pay(env, ref, '4000000000000002');
    await pay(env, ref);
    expect(await keepEnded(env, 'checkout-declined', ref)).toBe(1);
  });

  record('checkout-cancelled', async ({ env }) => {
    const { ref } = await begin(env);
    await send(env, ref, { kind: 'cancel', reason: 'checkout_cancelled' });
    expect(await keepEnded(env, 'checkout-cancelled', ref)).toBe(1);
  });

  record('checkout-expired', async ({ env }) => {
    const { clock, ref } = await begin(env);
    await env.advance(clock, START + 25 * 3_600_000);
    expect(await keepEnded(env, 'checkout-expired', ref)).toBe(1);
  });

  record('checkout-expired-asleep', async ({ env }) => {
    const createdAt = Date.now();
    const ref = await env.create({ createdAt, checkoutExpiresAt: createdAt + 3_000 });
    expect(await keepEnded(env, 'checkout-expired-asleep', ref)).toBe(1);
  });

  record('to-end', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 4 });
    await pay(env, ref);
    await env.advance(clock, '2027-04-01T00:00:00Z');
    await env.advance(clock, '2027-06-01T00:00:00Z');
    expect(await keepEnded(env, 'to-end', ref)).toBe(1);
  });

  record('trial-to-end', async ({ env }) => {
    const { clock, ref } = await begin(env, {
      cycleCount: 2,
      trial: { interval: 'DAY', count: 7 },
    });
    await pay(env, ref);
    await env.advance(clock, '2027-04-01T00:00:00Z');
    expect(await keepEnded(env, 'trial-to-end', ref)).toBe(1);
  });

  record('trial-asleep', async ({ env }) => {
    const trial = { interval: 'DAY', count: 7 } as const;
    const ref = await env.create({ createdAt: Date.now(), terms: { trial, cycleCount: 1 } });
    await pay(env, ref);
    await send(env, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    expect(await keepEnded(env, 'trial-asleep', ref)).toBeGreaterThan(0);
  });

  record('asleep', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await pay(env, ref);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    await reaches(env, ref, 'UNPAID');
    await send(env, ref, { kind: 'manualRetry' });
    await env.workflows.recheck(ref);
    await send(env, ref, { kind: 'pause' });
    await send(env, ref, { kind: 'unpause', newNextPaymentAt: Date.now() + 86_400_000 });
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await send(env, ref, { kind: 'cancel', reason: 'cancelled', atPeriodEnd: true });
    await send(env, ref, { kind: 'resume' });
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' }, '2');
    expect(await keepEnded(env, 'asleep', ref)).toBeGreaterThan(0);
  });

  record('dunning-to-recovery', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'manualRetry' });
    await env.advance(clock, '2027-02-28T05:00:00Z');
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepSubscription(env, 'dunning-to-recovery', ref)).toBe(1);
  });

  record('edit-pause-cancel', async ({ env }) => {
    const { clock, ref } = await unpaid(env);
    await send(env, ref, { kind: 'edit', newAmountMinor: 2_500 });
    await send(env, ref, { kind: 'pause' });
    const newNextPaymentAt = Date.parse('2027-04-15T00:00:00Z');
    await send(env, ref, { kind: 'unpause', newNextPaymentAt });
    await env.advance(clock, '2027-04-16T00:00:00Z');
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'edit-pause-cancel', ref)).toBe(1);
  });

  record('pause-until-date', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await send(env, ref, { kind: 'pause', resumeAt: Date.parse('2027-03-15T00:00:00Z') });
    await env.advance(clock, '2027-03-16T00:00:00Z');
    expect(await keepEnded(env, 'pause-until-date', ref)).toBe(1);
  });

  record('cancelled-at-period-end', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled', atPeriodEnd: true });
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'cancelled-at-period-end', ref)).toBe(1);
  });

  record('command-after-advance', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    await env.stopWorkers();
    await env.sendClock(clock, Date.parse('2027-03-15T00:00:00Z'));
    const paused = send(env, ref, { kind: 'pause' });
    await env.startWorkers();
    await paused;
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'command-after-advance', ref)).toBe(1);
  });

  record('over-budget', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    // Longer than the 3 s of a local activity.
    await env.control('POST', '/control/faults', {
      operation: 'charge',
      fault: 'delay',
      delayMs: 3_500,
      count: 1,
      match: { subscriptionId: ref.subscriptionId },
    });
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'over-budget', ref)).toBe(1);
  });

  record('operator', async ({ env }) => {
    const { ref } = await unpaid(env);
    const handle = workflowOf(env, ref);
    await handle.signal('edit', 'junk');
    await handle.signal('pause');
    await reaches(env, ref, 'PAUSED');
    await handle.cancel();
    expect(await keepEnded(env, 'operator', ref)).toBe(1);
  });

  record('operator-signals', async ({ env }) => {
    const { ref } = await unpaid(env);
    const handle = workflowOf(env, ref);
    await handle.signal('edit', { newAmountMinor: 2_500 });
    await handle.signal('manualRetry');
    await reaches(env, ref, 'ACTIVE');
    await handle.signal('unpause');
    await handle.signal('pause');
    await reaches(env, ref, 'PAUSED');
    await handle.signal('unpause', { newNextPaymentAt: START + 90 * 86_400_000 });
    await reaches(env, ref, 'ACTIVE');
    await handle.signal('cancel');
    expect(await keepEnded(env, 'operator-signals', ref)).toBe(1);
  });

  record('long-on-a-clock', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 3 });
    await pay(env, ref);
    const workflow = workflowOf(env, ref);
    const { runId } = await workflow.describe();
    await lengthenHistory(workflow, START, 120);
    await env.advance(clock, '2027-03-01T00:00:00Z');
    await isFollowed(workflow, runId);
    await env.advance(clock, '2027-05-01T00:00:00Z');
    expect(await keepEnded(env, 'long-on-a-clock', ref)).toBe(2);
  });

  record('full-while-asleep', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    const workflow = workflowOf(env, ref);
    const { runId } = await workflow.describe();
    await lengthenHistory(workflow, START, 400);
    await isFollowed(workflow, runId);
    await env.advance(clock, START + 50 * 86_400_000);
    expect(await keepEnded(env, 'full-while-asleep', ref)).toBeGreaterThan(1);
  });
});
