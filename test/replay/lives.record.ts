import { describe, expect, vi } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
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
  sleeps,
  START,
  unpaid,
  workflowOf,
} from './recorder.ts';

/**
 * Records histories of subscriptions without failures of activities or of the gateway. In a path whose name contains
 * `asleep`, the run waits until a command or a timer ends the wait. `poked` is an earlier word for a recheck;
 * a recorded history keeps its name.
 */

const record = recorderOn(onDevServer);

const reaches = (env: TestEnvironment, ref: SubscriptionRef, status: string) =>
  vi.waitFor(async () => expect((await env.state(ref)).status).toBe(status), 20_000);

async function keepEnded(
  env: TestEnvironment,
  path: string,
  ref: SubscriptionRef,
): Promise<number> {
  await workflowOf(env, ref).result();
  return keepSubscription(env, path, ref);
}

describe('record', () => {
  record('upfront', async ({ env }) => {
    const { clock, ref } = await begin(env, { upfrontAmountMinor: 500, cycleCount: 2 });
    await pay(env, ref);
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'upfront', ref)).toBe(1);
  });

  record('jitter', async ({ env }) => {
    await changeSettings(env.db, env.merchantId, { jitterMs: 6 * 3_600_000 });
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await changeSettings(env.db, env.merchantId, { jitterMs: 0 });
    await pay(env, ref);
    await env.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(env, 'jitter', ref)).toBe(1);
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

  record('checkout-expired-asleep', async ({ env }) => {
    const createdAt = Date.now();
    const ref = await env.create({ createdAt, checkoutExpiresAt: createdAt + 3_000 });
    expect(await keepEnded(env, 'checkout-expired-asleep', ref)).toBe(1);
  });

  record('trial-asleep', async ({ env }) => {
    const trial = { interval: 'DAY', count: 7 } as const;
    const ref = await env.create({ createdAt: Date.now(), terms: { trial, cycleCount: 1 } });
    await pay(env, ref);
    await sleeps(env, ref);
    await send(env, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    expect(await keepEnded(env, 'trial-asleep', ref)).toBeGreaterThan(2);
  });

  record('asleep', async ({ env }) => {
    const ref = await env.create({ createdAt: Date.now() });
    await pay(env, ref);
    await sleeps(env, ref);
    await decline(env, ref, 2);
    await send(env, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    await reaches(env, ref, 'UNPAID');
    await sleeps(env, ref);
    await send(env, ref, { kind: 'manualRetry' });
    await sleeps(env, ref);
    await env.workflows.recheck(ref);
    await vi.waitFor(async () => {
      const { historyLength } = await workflowOf(env, ref).describe();
      expect(historyLength).toBeGreaterThan(10);
    }, 20_000);
    await send(env, ref, { kind: 'pause' });
    await sleeps(env, ref);
    await send(env, ref, { kind: 'unpause', newNextPaymentAt: Date.now() + 86_400_000 });
    await sleeps(env, ref);
    await env.workflows.execute(ref, newMethodCommand(await env.token()));
    await sleeps(env, ref);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'asleep', ref)).toBeGreaterThan(6);
  });

  record('poked', async ({ env }) => {
    const { ref } = await begin(env);
    await pay(env, ref);
    await sleeps(env, ref);
    for (let sent = 0; sent < 3; sent += 1) await env.workflows.recheck(ref);
    await vi.waitFor(async () => {
      const { historyLength } = await workflowOf(env, ref).describe();
      expect(historyLength).toBeGreaterThan(12);
    }, 20_000);
    await send(env, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(env, 'poked', ref)).toBe(2);
  });

  record('operator-signals', async ({ env }) => {
    const { ref } = await unpaid(env);
    const handle = workflowOf(env, ref);
    await handle.signal('edit', { newAmountMinor: 2_500 });
    await handle.signal('manualRetry');
    await reaches(env, ref, 'ACTIVE');
    await handle.signal('pause');
    await reaches(env, ref, 'PAUSED');
    await handle.signal('unpause', { newNextPaymentAt: START + 90 * 86_400_000 });
    await reaches(env, ref, 'ACTIVE');
    await handle.signal('cancel');
    expect(await keepEnded(env, 'operator-signals', ref)).toBe(1);
  });

  // The history `unchecked-signal` is from an earlier release, which executed signals with invalid arguments:
  // an edit with `interval: ['MONTH']` and `intervalCount: 2`, then a pause and a cancel.

  record('refused-signals', async ({ env }) => {
    const { ref } = await unpaid(env);
    const handle = workflowOf(env, ref);
    await handle.signal('edit', {
      interval: ['MONTH'],
      intervalCount: 1,
      newNextPaymentAt: START + 90 * 86_400_000,
    });
    await handle.signal('unpause');
    await handle.signal('edit', { newAmountMinor: 2_500 });
    await handle.signal('cancel');
    expect(await keepEnded(env, 'refused-signals', ref)).toBe(1);
  });

  record('long-on-a-clock', async ({ env }) => {
    const { clock, ref } = await begin(env, { interval: 'DAY', cycleCount: 45 });
    await pay(env, ref);
    await env.advance(clock, START + 50 * 86_400_000);
    expect(await keepEnded(env, 'long-on-a-clock', ref)).toBe(2);
  });

  record('full-while-asleep', async ({ env }) => {
    const { clock, ref } = await begin(env, { cycleCount: 2 });
    await pay(env, ref);
    await sleeps(env, ref);
    await lengthenHistory(workflowOf(env, ref), START, 400);
    await sleeps(env, ref);
    await env.advance(clock, START + 50 * 86_400_000);
    expect(await keepEnded(env, 'full-while-asleep', ref)).toBe(3);
  });
});
