import { describe, expect, vi } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { onDevServer } from '../support/environment.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { lengthenHistory } from '../support/lives.ts';
import type { World } from '../support/world.ts';
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

/** Paths of subscriptions without failures of activities or of the gateway. */

const record = recorderOn(onDevServer());

const reaches = (world: World, ref: SubscriptionRef, status: string) =>
  vi.waitFor(async () => expect((await world.state(ref)).status).toBe(status), 20_000);

async function keepEnded(world: World, path: string, ref: SubscriptionRef): Promise<number> {
  await workflowOf(world, ref).result();
  return keepSubscription(world, path, ref);
}

describe('record', () => {
  record('upfront', async ({ world }) => {
    const { clock, ref } = await begin(world, { upfrontAmountMinor: 500, cycleCount: 2 });
    await pay(world, ref);
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(world, 'upfront', ref)).toBe(1);
  });

  record('jitter', async ({ world }) => {
    await changeSettings(world.db, world.merchantId, { jitterMs: 6 * 3_600_000 });
    const { clock, ref } = await begin(world, { cycleCount: 2 });
    await changeSettings(world.db, world.merchantId, { jitterMs: 0 });
    await pay(world, ref);
    await world.advance(clock, '2027-03-01T00:00:00Z');
    expect(await keepEnded(world, 'jitter', ref)).toBe(1);
  });

  record('checkout-declined', async ({ world }) => {
    const { ref } = await begin(world, { cycleCount: 1 });
    await pay(world, ref, '4242424242424241');
    await pay(world, ref, '4000000000000002');
    await pay(world, ref);
    expect(await keepEnded(world, 'checkout-declined', ref)).toBe(1);
  });

  record('checkout-cancelled', async ({ world }) => {
    const { ref } = await begin(world);
    await send(world, ref, { kind: 'cancel', reason: 'checkout_cancelled' });
    expect(await keepEnded(world, 'checkout-cancelled', ref)).toBe(1);
  });

  record('checkout-expired-asleep', async ({ world }) => {
    const createdAt = Date.now();
    const ref = await world.create({ createdAt, checkoutExpiresAt: createdAt + 3_000 });
    expect(await keepEnded(world, 'checkout-expired-asleep', ref)).toBe(1);
  });

  record('trial-asleep', async ({ world }) => {
    const trial = { interval: 'DAY', count: 7 } as const;
    const ref = await world.create({ createdAt: Date.now(), terms: { trial, cycleCount: 1 } });
    await pay(world, ref);
    await sleeps(world, ref);
    await send(world, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    expect(await keepEnded(world, 'trial-asleep', ref)).toBeGreaterThan(2);
  });

  record('asleep', async ({ world }) => {
    const ref = await world.create({ createdAt: Date.now() });
    await pay(world, ref);
    await sleeps(world, ref);
    await decline(world, ref, 2);
    await send(world, ref, { kind: 'edit', newNextPaymentAt: Date.now() + 3_000 });
    await reaches(world, ref, 'UNPAID');
    await sleeps(world, ref);
    await send(world, ref, { kind: 'manualRetry' });
    await sleeps(world, ref);
    await world.workflows.recheck(ref);
    await vi.waitFor(async () => {
      const { historyLength } = await workflowOf(world, ref).describe();
      expect(historyLength).toBeGreaterThan(10);
    }, 20_000);
    await send(world, ref, { kind: 'pause' });
    await sleeps(world, ref);
    await send(world, ref, { kind: 'unpause', newNextPaymentAt: Date.now() + 86_400_000 });
    await sleeps(world, ref);
    await world.workflows.execute(ref, newMethodCommand(await world.token()));
    await sleeps(world, ref);
    await send(world, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(world, 'asleep', ref)).toBeGreaterThan(6);
  });

  record('poked', async ({ world }) => {
    const { ref } = await begin(world);
    await pay(world, ref);
    await sleeps(world, ref);
    for (let sent = 0; sent < 3; sent += 1) await world.workflows.recheck(ref);
    await vi.waitFor(async () => {
      const { historyLength } = await workflowOf(world, ref).describe();
      expect(historyLength).toBeGreaterThan(12);
    }, 20_000);
    await send(world, ref, { kind: 'cancel', reason: 'cancelled' });
    expect(await keepEnded(world, 'poked', ref)).toBe(2);
  });

  record('operator-signals', async ({ world }) => {
    const { ref } = await unpaid(world);
    const handle = workflowOf(world, ref);
    await handle.signal('edit', { newAmountMinor: 2_500 });
    await handle.signal('manualRetry');
    await reaches(world, ref, 'ACTIVE');
    await handle.signal('pause');
    await reaches(world, ref, 'PAUSED');
    await handle.signal('unpause', { newNextPaymentAt: START + 90 * 86_400_000 });
    await reaches(world, ref, 'ACTIVE');
    await handle.signal('cancel');
    expect(await keepEnded(world, 'operator-signals', ref)).toBe(1);
  });

  record('long-on-a-clock', async ({ world }) => {
    const { clock, ref } = await begin(world, { interval: 'DAY', cycleCount: 45 });
    await pay(world, ref);
    await world.advance(clock, START + 50 * 86_400_000);
    expect(await keepEnded(world, 'long-on-a-clock', ref)).toBe(2);
  });

  record('full-while-asleep', async ({ world }) => {
    const { clock, ref } = await begin(world, { cycleCount: 2 });
    await pay(world, ref);
    await sleeps(world, ref);
    await lengthenHistory(workflowOf(world, ref), START, 400);
    await sleeps(world, ref);
    await world.advance(clock, START + 50 * 86_400_000);
    expect(await keepEnded(world, 'full-while-asleep', ref)).toBe(3);
  });
});
