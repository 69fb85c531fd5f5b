import { eq } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { listWebhookConfigs } from '../../db/repositories/webhooks/configs.ts';
import { webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { gate } from '../support/gate.ts';
import { onWebhookQueues as it, streamIds } from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';

const drain = (env: WebhookEnvironment, configId: string, nowAt: number) =>
  env.activities.drainEndpoint({ merchantId: env.merchantId, configId, nowAt });

/** Drains once, and computes the time of the next drain as the endpoint queue's workflow does. */
async function drainNext(env: WebhookEnvironment, configId: string, nowAt: number) {
  const startedAt = performance.now();
  const { remaining, nextDelayMs } = await drain(env, configId, nowAt);
  const tookMs = performance.now() - startedAt;
  const { pausedUntil } = await env.config(configId);
  return {
    remaining,
    // The drain may have read a clock that was 1 ms ahead of this one.
    nextAt: nowAt + tookMs + (nextDelayMs ?? 0) + 1,
    /** Expects that the breaker pauses for `baseMs` with a jitter of ±20 %, from an instant during this drain. */
    expectPause(baseMs: number): void {
      const untilEndMs = (pausedUntil ?? Number.NaN) - nowAt;
      expect(untilEndMs).toBeGreaterThanOrEqual(baseMs * 0.8);
      expect(untilEndMs).toBeLessThanOrEqual(baseMs * 1.2 + tookMs + 1);
    },
  };
}

describe('a failing endpoint', () => {
  it('gets one request per pause for all its 50 streams while its breaker is open [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerWith({ status: 500 });
    await env.emitTo(...streamIds(50));
    const startedAt = Date.now();
    let next = await drainNext(env, configId, startedAt);
    const opened = receiver.received.length;
    // The breaker opens at the fifth failure. At this moment at most eight requests are in flight.
    expect(opened).toBeGreaterThanOrEqual(5);
    expect(opened).toBeLessThanOrEqual(12);
    next.expectPause(5_000);

    // A drain before the end of the pause sends nothing.
    const early = await drain(env, configId, startedAt + 1_000);
    expect(receiver.received).toHaveLength(opened);
    expect(early.pausedMs).toBeGreaterThan(0);

    for (const [index, baseMs] of [10_000, 20_000, 40_000, 60_000, 60_000, 60_000].entries()) {
      next = await drainNext(env, configId, next.nextAt);
      expect(receiver.received).toHaveLength(opened + index + 1);
      next.expectPause(baseMs);
    }
    expect(next.remaining).toBe(50);
    const rows = await env.db.select().from(webhookDeliveries);
    expect(rows.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(opened + 6);
    expect((await env.config(configId)).consecutiveFailures).toBe(11);
  });

  it('gets all deliveries in order after its recovery, with 1, 2, 4 and then 8 concurrent requests [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerWith({ status: 503 });
    const ids = streamIds(40);
    await env.emitTo(...ids, ...ids);
    const down = await drainNext(env, configId, Date.now());
    const before = receiver.received.length;

    receiver.answerWith({ status: 200 });
    let inFlight = 0;
    const widths: number[] = [];
    const full = gate();
    receiver.onReceive(async () => {
      inFlight += 1;
      widths.push(inFlight);
      if (inFlight === 8) full.open();
      // After 7 = 1 + 2 + 4 successes, requests wait until eight are in flight.
      await (widths.length > 7 ? full.isOpen : new Promise((resolve) => setTimeout(resolve, 20)));
      inFlight -= 1;
    });
    // A minute later the retries of the failed deliveries are due, too.
    const back = await drain(env, configId, down.nextAt + 60_000);
    expect(back).toEqual({ remaining: 0, nextDelayMs: null, pausedMs: 0 });
    expect(await env.config(configId)).toMatchObject({
      consecutiveFailures: 0,
      pausedUntil: null,
      failingSince: null,
    });
    expect(widths[0]).toBe(1);
    expect(Math.max(...widths.slice(0, 3))).toBeLessThanOrEqual(2);
    expect(Math.max(...widths.slice(0, 7))).toBeLessThanOrEqual(4);
    expect(Math.max(...widths)).toBe(8);
    for (const streamId of ids) {
      const taken = receiver.received
        .slice(before)
        .filter(({ event }) => event['streamId'] === streamId)
        .map(({ event }) => event.sequence);
      expect(taken).toEqual([1, 2]);
    }
  });
});

describe('an endpoint that begins to fail, and recovers', () => {
  it('is logged when it begins to fail and when it recovers, shows its latest error, and gets what waits at once after an update [D-54, D-55]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    const { merchantId } = env;
    const shown = async () => {
      const configs = await listWebhookConfigs(env.db, merchantId, { includeInactive: false });
      return configs.map(({ lastError, oldestPendingAt }) => ({
        lastError,
        isWaiting: oldestPendingAt !== null,
      }));
    };
    receiver.answerWith({ status: 500 });
    await env.emit(100);
    const nowAt = Date.now();
    await drain(env, configId, nowAt);
    const second = await drain(env, configId, nowAt + 10_000);
    expect(second.nextDelayMs).toBeGreaterThan(200_000);
    expect(receiver.received).toHaveLength(2);
    expect(await shown()).toEqual([{ lastError: 'status 500', isWaiting: true }]);

    receiver.answerWith({ status: 200 });
    await env.changeConfig(configId, { url: receiver.url, at: nowAt + 11_000 });
    await drain(env, configId, nowAt + 11_000);
    expect(receiver.received).toHaveLength(3);
    expect(await shown()).toEqual([{ lastError: null, isWaiting: false }]);

    // An update closes the breaker, so only a success without an update is a recovery.
    receiver.answerWith({ status: 500 });
    await env.emit(200);
    await drain(env, configId, nowAt + 12_000);
    receiver.answerWith({ status: 200 });
    await drain(env, configId, nowAt + 22_000);
    const begins = { merchantId, configId, error: null, httpStatus: 500 };
    const message = 'webhook endpoint begins to fail';
    expect(env.own.lines).toEqual([
      { ...begins, message },
      { ...begins, message },
      { merchantId, configId, message: 'webhook endpoint has recovered' },
    ]);
    await drain(env, configId, nowAt + 86_400_000);
    expect(receiver.received).toHaveLength(5);
  });
});

describe('an endpoint whose breaker pauses it', () => {
  const pause = (env: WebhookEnvironment, configId: string, pausedUntil: number) =>
    env.db
      .update(webhookConfigs)
      .set({ consecutiveFailures: 5, pausedUntil, failingSince: pausedUntil - 120_000 })
      .where(eq(webhookConfigs.id, configId));

  it('gets an event of the pause at the end of the pause when its other delivery is due later [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emitTo('sub_failed');
    const nowAt = Date.now();
    await env.db
      .update(webhookDeliveries)
      .set({ attempts: 2, nextAttemptAt: nowAt + 7_200_000 })
      .where(eq(webhookDeliveries.streamId, 'sub_failed'));
    await pause(env, configId, nowAt + 60_000);
    const { remaining, nextDelayMs, pausedMs } = await drain(env, configId, nowAt);
    expect({ remaining, nextDelayMs }).toEqual({ remaining: 1, nextDelayMs: pausedMs });
    expect(pausedMs).toBeGreaterThan(0);
    expect(pausedMs).toBeLessThanOrEqual(60_000);

    // A commit wakes no queue during a pause, because the queue probes at its end.
    await env.emitTo('sub_new');
    await env.own.deliver({ merchantId: env.merchantId, streamId: 'sub_new' });
    expect([env.woken, receiver.received]).toEqual([[], []]);

    const after = await drain(env, configId, nowAt + 60_000);
    expect(receiver.received.map(({ event }) => event['streamId'])).toEqual(['sub_new']);
    expect([after.remaining, after.pausedMs]).toEqual([1, 0]);
    await drain(env, configId, nowAt + 7_000_000);
    expect(receiver.received).toHaveLength(1);
  });

  it('has its queue wait for the end of the pause when nothing is pending [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    const nowAt = Date.now();
    await pause(env, configId, nowAt + 60_000);
    const { remaining, nextDelayMs, pausedMs } = await drain(env, configId, nowAt);
    expect({ remaining, nextDelayMs }).toEqual({ remaining: 0, nextDelayMs: pausedMs });
    expect(pausedMs).toBeGreaterThan(0);
    expect(pausedMs).toBeLessThanOrEqual(60_000);
    expect(await drain(env, configId, nowAt + 60_000)).toEqual({
      remaining: 0,
      nextDelayMs: null,
      pausedMs: 0,
    });
    expect(receiver.received).toEqual([]);
  });
});
