import { describe, expect } from 'vitest';
import { createDb } from '../../db/client.ts';
import {
  answers,
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  NOTHING_LEFT,
  onWebhookQueues as it,
  SECRET,
  sequences,
} from '../support/webhook-environment.ts';

describe('a webhook delivery', () => {
  it.for([200, 201, 204, 299])(
    'succeeds when the endpoint answers %i [D-54]',
    async (status, { env }) => {
      const { receiver, configId } = await env.startEndpoint();
      await env.emit(1_000);
      receiver.answerWith({ status });
      expect(await env.deliver()).toEqual(NOTHING_LEFT);
      expect(await env.progress(configId)).toEqual(['1 DELIVERED 1']);
    },
  );

  it('fails and does not follow the redirect when the endpoint redirects [D-54]', async ({
    env,
  }) => {
    const [receiver, target] = [await env.startReceiver(), await env.startReceiver()];
    const configId = await env.addConfig({ url: receiver.url });
    await env.emit(1_000);
    receiver.answerWith({ status: 307, headers: { location: target.url } });
    expect((await env.deliver()).remaining).toBe(1);
    expect(await env.progress(configId)).toEqual(['1 PENDING 1']);
    expect(target.received).toEqual([]);
  });

  it('succeeds by its status when the answer’s body is larger than 64 kB [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000, 2_000);
    receiver.answerNext({ status: 200, body: Buffer.alloc(8 * 1024 * 1024, 'x') });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1', '2 DELIVERED 1']);
  });

  it('succeeds by its status when the answer has 20 kB of headers [D-54]', async ({ env }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    const cookies = { 'set-cookie': Array.from({ length: 20 }, () => 'x'.repeat(1_000)) };
    receiver.answerNext({ status: 200, headers: cookies });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1']);
  });

  it.for([
    [
      'follows a 100 that no request asked for',
      'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n',
    ],
    ['has a control character in a header', 'HTTP/1.1 200 OK\r\nx-trace: a\u0001b\r\n\r\n'],
    ['has two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok'],
    ['ends its lines with LF alone', 'HTTP/1.1 200 OK\ncontent-length: 0\n\n'],
  ] as const)('succeeds by its status when the answer %s [D-54]', async ([, raw], { env }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    receiver.answerNext({ status: 200, raw });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1']);
  });

  it('waits as long as the endpoint’s Retry-After says [D-54]', async ({ env }) => {
    const { receiver } = await env.startEndpoint();
    await env.emit(1_000);
    receiver.answerNext({ status: 429, headers: { 'retry-after': '3600' } });
    const startedAt = performance.now();
    const { nextDelayMs } = await env.deliver();
    const tookMs = performance.now() - startedAt;
    expect((nextDelayMs ?? Number.NaN) + tookMs).toBeGreaterThanOrEqual(HOUR_MS);
    expect(nextDelayMs).toBeLessThanOrEqual(HOUR_MS);
    await env.deliver({ laterMs: 59 * MINUTE_MS });
    expect(answers(receiver)).toEqual(['1: 429']);
    expect(await env.deliver({ laterMs: 61 * MINUTE_MS })).toEqual(NOTHING_LEFT);
    expect(answers(receiver)).toEqual(['1: 429', '1: 200']);
  });

  it('fails when the connection breaks before the answer, and is repeated with the same bytes and id [D-52, D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    receiver.answerNext('close');
    expect((await env.deliver()).remaining).toBe(1);
    expect(await env.progress(configId)).toEqual(['1 PENDING 1']);
    expect(await env.deliver({ laterMs: MINUTE_MS })).toEqual(NOTHING_LEFT);
    expect(answers(receiver)).toEqual(['1: null', '1: 200']);
    const [first, again] = receiver.received;
    expect(again?.rawBody.equals(first?.rawBody ?? Buffer.alloc(0))).toBe(true);
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
  });

  it('fails for good after ten attempts in 75.6 hours, which deactivates no configuration [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerWith({ status: 503 });
    await env.emit(1_000);
    let laterMs = 0;
    let delivered = await env.deliver();
    while (delivered.nextDelayMs !== null) {
      // A minute more, because the delay begins when the request ends.
      laterMs += delivered.nextDelayMs + MINUTE_MS;
      delivered = await env.deliver({ laterMs });
    }
    expect(delivered).toEqual(NOTHING_LEFT);
    // The sum of the delays, each with a jitter: 5 s + 5 min + 30 min + 2 h + 5 h + 10 h + 14 h + 20 h + 24 h.
    expect(laterMs).toBeGreaterThan(0.8 * 75.5 * HOUR_MS);
    expect(laterMs).toBeLessThan(1.2 * 75.6 * HOUR_MS);
    expect(await env.progress(configId)).toEqual(['1 FAILED 10']);
    expect((await env.config(configId)).isActive).toBe(true);
    expect(await env.deliver({ laterMs: laterMs + DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(10);
  });
});

describe('a webhook configuration', () => {
  it('is deactivated and has its deliveries dropped when its endpoint answers 410 [D-54]', async ({
    env,
  }) => {
    const [gone, other] = [await env.startReceiver(), await env.startReceiver()];
    const goneId = await env.addConfig({ url: gone.url });
    const otherId = await env.addConfig({ url: other.url });
    await env.emit(1_000, 2_000);
    gone.answerNext({ status: 200 }, { status: 410 });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(await env.config(goneId)).toMatchObject({
      isActive: false,
      deactivatedReason: 'endpoint_gone',
    });
    expect(await env.progress(goneId)).toEqual(['1 DELIVERED 1', '2 DROPPED 1']);

    await env.emit(3_000);
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(answers(gone)).toEqual(['1: 200', '2: 410']);
    expect(await env.progress(goneId)).toHaveLength(2);
    expect(await env.progress(otherId)).toEqual([
      '1 DELIVERED 1',
      '2 DELIVERED 1',
      '3 DELIVERED 1',
    ]);
  });

  it('gets no further request from a drain that deactivated it when other requests end later [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emitTo(...Array.from({ length: 16 }, (_, index) => `sub_${index}`));
    // Counts the statements of the drain, so that the last request can wait for a record of the others.
    let statements = 0;
    const { db, close } = createDb({
      url: env.databaseUrl,
      poolSize: 2,
      applicationName: 'drain',
      beforeEach: () => void (statements += 1),
    });
    receiver.answerNext({ status: 410 });
    receiver.onReceive(async () => {
      const position = receiver.received.length;
      if (position === 1) return;
      await expect.poll(async () => (await env.config(configId)).isActive).toBe(false);
      const before = statements;
      if (position === 8) await expect.poll(() => statements).toBeGreaterThan(before);
    });
    const { activities } = env.startProcess(db);
    const drain = () =>
      activities.drainEndpoint({ merchantId: env.merchantId, configId, nowAt: Date.now() });
    expect(await drain()).toEqual({ ...NOTHING_LEFT, pausedMs: 0 });
    expect(await drain()).toEqual({ ...NOTHING_LEFT, pausedMs: 0 });
    await close();
    expect(receiver.received).toHaveLength(8);
    expect((await env.progress(configId)).toSorted()).toEqual([
      ...Array.from({ length: 7 }, () => '1 DELIVERED 1'),
      ...Array.from({ length: 8 }, () => '1 DROPPED 0'),
      '1 DROPPED 1',
    ]);
  });

  it('is deactivated when its endpoint failed for five days without a success [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerWith({ status: 500 });
    await env.emit(1_000);
    await env.deliver();
    const { failingSince } = await env.config(configId);
    expect(failingSince).toBeGreaterThan(Date.now() - MINUTE_MS);

    for (const day of [1, 2, 3, 4]) await env.deliver({ laterMs: day * DAY_MS });
    await env.deliver({ laterMs: 5 * DAY_MS - MINUTE_MS });
    expect((await env.config(configId)).isActive).toBe(true);
    const lastMs = 5 * DAY_MS + MINUTE_MS + 24 * HOUR_MS;
    await env.deliver({ laterMs: lastMs });
    // The breaker is open, so the queue drains again at the end of its pause.
    expect(await env.deliver({ laterMs: lastMs + 2 * MINUTE_MS })).toEqual(NOTHING_LEFT);
    expect(await env.config(configId)).toMatchObject({
      isActive: false,
      deactivatedReason: 'failing_for_five_days',
    });
    expect(await env.progress(configId)).toEqual(['1 DROPPED 7']);
  });

  it('has the five days until its deactivation counted anew after a success [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.setConfig(configId, { failingSince: Date.now() - 6 * DAY_MS });
    await env.emit(1_000, 2_000);
    receiver.answerNext({ status: 200 }, { status: 500 });
    await env.deliver();
    const { isActive, failingSince } = await env.config(configId);
    expect(isActive).toBe(true);
    expect(failingSince).toBeGreaterThan(Date.now() - MINUTE_MS);
  });

  it('is not deactivated by the first failure after a month without events, which followed days of failures [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.setConfig(configId, {
      consecutiveFailures: 10,
      failingSince: Date.now() - 33 * DAY_MS,
      pausedUntil: Date.now() - 30 * DAY_MS,
    });
    await env.emit(1_000);
    receiver.answerNext({ status: 502 });
    await env.deliver();
    expect(await env.config(configId)).toMatchObject({ isActive: true });
    expect(await env.deliver({ laterMs: 2 * MINUTE_MS })).toEqual(NOTHING_LEFT);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 2']);
    expect(receiver.received).toHaveLength(2);
  });

  it('gets nothing more when it was deleted or switched off [D-54]', async ({ env }) => {
    const { receiver, configId: deletedId } = await env.startEndpoint();
    const offId = await env.addConfig({ url: receiver.url });
    await env.emit(1_000);
    await env.deleteConfig(deletedId);
    // Simulates an event that was stored while the configuration was being switched off.
    await env.setConfig(offId, { isActive: false });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(await env.progress(deletedId)).toEqual(['1 DROPPED 0']);
    expect(await env.progress(offId)).toEqual(['1 DROPPED 0']);
    expect(receiver.received).toEqual([]);
  });

  it('blocks no other configuration and loses no event when its secret cannot be decrypted [D-55]', async ({
    env,
  }) => {
    const [broken, alive] = [await env.startReceiver(), await env.startReceiver()];
    const brokenId = await env.addConfig({ url: broken.url });
    const aliveId = await env.addConfig({ url: alive.url });
    const { sealedSigner } = await env.config(brokenId);
    await env.setConfig(brokenId, { sealedSigner: env.sealing.seal(SECRET, 'elsewhere') });
    await env.emit(1_000);
    await expect(env.deliver()).rejects.toThrow('belongs to another record');
    expect(await env.progress(aliveId)).toEqual(['1 DELIVERED 1']);
    expect(await env.progress(brokenId)).toEqual(['1 PENDING 0']);

    // The merchant sets the secret again. The unreadable secret does not become the previous secret, which also signs.
    await env.changeConfig(brokenId, {
      url: broken.url,
      reseal: () => ({ sealedSigner, isStoredReadable: false }),
    });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(sequences(broken)).toEqual([1]);
  });

  it('gets an event with one signature when its previous secret cannot be decrypted [D-55]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.setConfig(configId, {
      sealedPreviousSigner: env.sealing.seal('former secret', 'elsewhere'),
      previousSignerUntil: Date.now() + DAY_MS,
    });
    await env.emit(1_000);
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(receiver.received[0]).toMatchObject({ isStandardSignatureValid: true });
    expect(String(receiver.received[0]?.headers['webhook-signature']).split(' ')).toHaveLength(1);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1']);
  });
});
