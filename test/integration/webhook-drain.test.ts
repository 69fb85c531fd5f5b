import { and, gt, eq, sql } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { Drain } from '../../activities/webhooks/drain.ts';
import { createWebhookSender } from '../../activities/webhooks/sender.ts';
import { createDb } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { webhookDeliveries } from '../../db/schema/webhooks.ts';
import { gate } from '../support/gate.ts';
import { onWebhookQueues } from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';

/** What becomes of requests in flight when something happens between a drain's statements. */

const it = onWebhookQueues.extend('spied', async ({ env }, { onCleanup }) => {
  const hook = { beforeStatement: () => undefined as void };
  const handle = createDb({
    url: env.databaseUrl,
    poolSize: 4,
    applicationName: 'test',
    beforeEach: () => hook.beforeStatement(),
  });
  onCleanup(() => handle.close());
  return { db: handle.db, hook };
});

function drainOf(
  env: WebhookEnvironment,
  db: Db,
  { configId, share }: { configId: string; share: () => number },
): Drain {
  return new Drain(
    { db, sealing: env.sealing, send: createWebhookSender({ allowLoopback: true }) },
    { merchantId: env.merchantId, configId, nowAt: Date.now() },
    {
      mayProbe: () => true,
      share,
      isStopping: () => false,
      onEvent: () => undefined,
      onEnd: () => undefined,
    },
  );
}

it('a drain claims nothing, and sends each event once, when other drains of its merchant take its room while it records [D-54]', async ({
  env,
  spied: { db, hook },
}) => {
  const { receiver, configId } = await env.startEndpoint();
  const streams = Array.from({ length: 6 }, (_, index) => `sub_${index}`);
  await env.emitTo(...streams);
  const others = gate();
  let share = streams.length;
  let isFirst = true;
  receiver.onReceive(async () => {
    if (!isFirst) return others.isOpen;
    isFirst = false;
    await receiver.waitFor(streams.length);
    // The next statement records the first request. Five are still in flight then.
    hook.beforeStatement = () => void (share = 1);
    await env.emitTo('sub_late');
    drain.notify();
  });
  const drain = drainOf(env, db, { configId, share: () => share });
  const ended = drain.run();
  await expect.poll(() => env.progress(configId)).toContain('1 DELIVERED 1');
  others.open();
  expect(await ended).toEqual({ remaining: 0, nextDelayMs: null, pausedMs: 0 });
  expect(receiver.received).toHaveLength(7);
  expect(await env.progress(configId)).toEqual(Array.from({ length: 7 }, () => '1 DELIVERED 1'));
});

it('the requests in flight are recorded, and the endpoint’s queue is woken, when a claim fails [D-54]', async ({
  env,
  spied: { db, hook },
}) => {
  const { receiver, configId } = await env.startEndpoint();
  const failed = gate();
  receiver.onReceive(() => {
    hook.beforeStatement = () => {
      hook.beforeStatement = () => undefined;
      failed.open();
      throw new Error('the database is away');
    };
    return failed.isOpen;
  });
  await env.emit(1_000);
  const other = env.startProcess(db);
  await env.dispatch(other);
  expect(await env.progress(configId)).toEqual(['1 DELIVERED 1']);
  expect([other.woken, receiver.received.length]).toEqual([[configId], 1]);
  expect(other.lines).toMatchObject([{ configId, message: 'webhooks cannot be sent' }]);
  expect(await env.deliver()).toEqual({ remaining: 0, nextDelayMs: null });
  expect(receiver.received).toHaveLength(1);
});

it('a drain whose record failed repeats the record, and releases the deliveries that it has not sent [D-54]', async ({
  env,
  spied: { db, hook },
}) => {
  const { receiver, configId } = await env.startEndpoint();
  const failed = gate();
  let share = 8;
  receiver.onReceive(async () => {
    if (share === 1) return failed.isOpen;
    // No request begins in the place of this one, so the next statement records it.
    share = 1;
    await receiver.waitFor(8);
    hook.beforeStatement = () => {
      hook.beforeStatement = () => undefined;
      failed.open();
      throw new Error('the database is away');
    };
  });
  await env.emitTo(...Array.from({ length: 20 }, (_, index) => `sub_${index}`));
  const drain = drainOf(env, db, { configId, share: () => share });
  await expect(drain.run()).rejects.toThrow('Failed query');
  expect(receiver.received).toHaveLength(8);
  expect(await env.deliver()).toEqual({ remaining: 0, nextDelayMs: null });
  expect(receiver.received).toHaveLength(20);
  expect(await env.progress(configId)).toEqual(Array.from({ length: 20 }, () => '1 DELIVERED 1'));
});

it('the claims of what an open breaker forbids end while requests are still in flight [D-54]', async ({
  env,
}) => {
  const { receiver, configId } = await env.startEndpoint();
  const slow = gate();
  receiver.answerWith({ status: 500 });
  let arrived = 0;
  receiver.onReceive(() => {
    arrived += 1;
    return arrived > 5 ? slow.isOpen : undefined;
  });
  await env.emitTo(...Array.from({ length: 20 }, (_, index) => `sub_${index}`));
  const drained = env.activities.drainEndpoint({
    merchantId: env.merchantId,
    configId,
    nowAt: Date.now(),
  });
  const isClaimed = and(
    eq(webhookDeliveries.configId, configId),
    gt(webhookDeliveries.claimedUntil, sql`now()`),
  );
  await expect.poll(async () => (await env.config(configId)).consecutiveFailures).toBe(5);
  // Only the requests in flight are still claimed.
  await expect
    .poll(async () => {
      const claimed = await env.db.$count(webhookDeliveries, isClaimed);
      return claimed - (receiver.received.length - 5);
    })
    .toBe(0);
  expect(receiver.received.length).toBeGreaterThan(5);
  slow.open();
  expect(await drained).toMatchObject({ remaining: 20 });
  expect(await env.db.$count(webhookDeliveries, isClaimed)).toBe(0);
});

it('another stream’s event is sent at once while a drain of 20 s waits for its slow request [D-54]', async ({
  env,
}) => {
  const { receiver, configId } = await env.startEndpoint();
  const slow = gate();
  receiver.onReceive(({ event }) => (event['streamId'] === 'sub_slow' ? slow.isOpen : undefined));
  const deliver = async (streamId: string) => {
    await env.emitTo(streamId);
    return env.own.deliver({ merchantId: env.merchantId, streamId });
  };
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const first = deliver('sub_slow');
    await receiver.waitFor(1);
    vi.advanceTimersByTime(20_001);
    await deliver('sub_quick');
    expect(receiver.received.map(({ event }) => event['streamId'])).toEqual([
      'sub_slow',
      'sub_quick',
    ]);
    slow.open();
    await first;
  } finally {
    vi.useRealTimers();
  }
  expect(await env.progress(configId)).toEqual(['1 DELIVERED 1', '1 DELIVERED 1']);
});

it('an event is sent at once when a drain that found the endpoint inactive still waits for a slow request [D-54, D-55]', async ({
  env,
}) => {
  const { receiver, configId } = await env.startEndpoint();
  const slow = gate();
  receiver.onReceive(({ event }) => (event['streamId'] === 'sub_late' ? undefined : slow.isOpen));
  await env.emit(1_000);
  const first = env.dispatch();
  await receiver.waitFor(1);
  await env.setConfig(configId, { isActive: false });
  await expect.poll(() => env.progress(configId)).toEqual(['1 DROPPED 0']);
  await env.setConfig(configId, { isActive: true });
  await env.emitTo('sub_late');
  await env.own.deliver({ merchantId: env.merchantId, streamId: 'sub_late' });
  expect(receiver.received.map(({ event }) => event['streamId'])).toEqual([
    env.streamId,
    'sub_late',
  ]);
  slow.open();
  await first;
  expect(await env.progress(configId)).toEqual(['1 DROPPED 0', '1 DELIVERED 1']);
});
