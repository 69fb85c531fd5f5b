import { expect } from 'vitest';
import { Drain } from '../../activities/webhooks/drain.ts';
import { createWebhookSender } from '../../activities/webhooks/sender.ts';
import { createDb } from '../../db/client.ts';
import { gate } from '../support/gate.ts';
import { onWebhookQueues } from '../support/webhook-environment.ts';

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
  const drain = new Drain(
    { db, sealing: env.sealing, send: createWebhookSender({ allowLoopback: true }) },
    { merchantId: env.merchantId, configId, nowAt: Date.now() },
    { mayProbe: true, share: () => share, isStopping: () => false, onEnd: () => undefined },
  );
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
