import { eq } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { appendEvents } from '../../db/repositories/outbox.ts';
import {
  changeFailingSince,
  deleteWebhookConfig,
  updateWebhookConfig,
} from '../../db/repositories/webhook-configs.ts';
import { deliveryLeases } from '../../db/schema/delivery-leases.ts';
import { webhookConfigs } from '../../db/schema/webhook-configs.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';
import { createWebhookWorld, SECRET } from '../support/webhook-world.ts';
import type { WebhookWorld } from '../support/webhook-world.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOTHING_LEFT = { remaining: 0, nextDelayMs: null };
/** Within ±20 % of a wait; upper bound with a second of run time. */
const about = (baseMs: number) => ({
  atLeast: baseMs * 0.8 - 1_000,
  atMost: baseMs * 1.2,
});

let world: WebhookWorld;
let receivers: WebhookReceiver[];

const startReceiver = async (...secrets: string[]): Promise<WebhookReceiver> => {
  const receiver = await startWebhookReceiver({ secrets: secrets.length > 0 ? secrets : [SECRET] });
  receivers.push(receiver);
  return receiver;
};
const sequences = (receiver: WebhookReceiver) =>
  receiver.received.map(({ event }) => event.sequence);
const answers = (receiver: WebhookReceiver) =>
  receiver.received.map(({ event, answered }) => `${event.sequence}: ${answered}`);

beforeEach(async () => {
  receivers = [];
  world = await createWebhookWorld();
});
afterEach(async () => {
  await Promise.all(receivers.map((receiver) => receiver.close()));
  // Whatever a test did, nobody holds a stream afterwards.
  expect(await world.db.select().from(deliveryLeases)).toEqual([]);
  await world.close();
});

describe('what is sent', () => {
  it('carries both signatures over the exact bytes that are sent [D-53]', async () => {
    const receiver = await startReceiver();
    await world.addConfig({ url: receiver.url });
    await world.emit(1_999);
    expect(await world.deliver()).toEqual(NOTHING_LEFT);

    const [webhook] = receiver.received;
    expect(webhook).toMatchObject({
      event: { sequence: 1, amount: 1_999, note: 'Zoë – 100 %' },
      isStandardSignatureValid: true,
      isXpaySignatureValid: true,
      headers: { 'content-type': 'application/json' },
    });
    expect(webhook?.headers['webhook-id']).toBe(webhook?.event.eventId);
    const verified = new Webhook(SECRET).verify(
      webhook?.rawBody ?? '',
      webhook?.headers as Record<string, string>,
    );
    expect(verified).toEqual(webhook?.event);
  });

  it('stays the same, byte for byte and with the same id, in every attempt [D-52]', async () => {
    const receiver = await startReceiver();
    await world.addConfig({ url: receiver.url });
    await world.emit(1_999);
    receiver.answerNext({ status: 500 }, { status: 404 });
    for (const laterMs of [0, 10_000, 20 * MINUTE_MS]) await world.deliver({ laterMs });

    expect(answers(receiver)).toEqual(['1: 500', '1: 404', '1: 200']);
    expect(new Set(receiver.received.map(({ rawBody }) => rawBody.toString('hex'))).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.received.every((webhook) => webhook.isStandardSignatureValid)).toBe(true);
  });

  it('is signed with the old secret too for 24 h after a change, in the list only [D-53]', async () => {
    const newSecret = 'brand new secret';
    const [byOld, byNew] = [await startReceiver(SECRET), await startReceiver(newSecret)];
    const configId = await world.addConfig({ url: byOld.url });
    const change = (url: string, secret: string) =>
      updateWebhookConfig(world.db, {
        merchantId: world.merchantId,
        configId,
        url,
        eventTypes: ['subscription.cycle_charged'],
        reseal: (stored) =>
          world.sealing.open(stored, configId) === secret
            ? null
            : world.sealing.seal(secret, configId),
        at: Date.now(),
      });
    const sent = async (receiver: WebhookReceiver) => {
      await world.emit(1_999);
      expect(await world.deliver()).toEqual(NOTHING_LEFT);
      const webhook = receiver.received.at(-1);
      return {
        listed: String(webhook?.headers['webhook-signature']).split(' ').length,
        standard: webhook?.isStandardSignatureValid,
        xpay: webhook?.isXpaySignatureValid,
      };
    };

    expect(await change(byOld.url, newSecret)).toBe(true);
    expect(await sent(byOld)).toEqual({ listed: 2, standard: true, xpay: false });
    // An update that names the same secret again does not shorten the old one's 24 h.
    expect(await change(byNew.url, newSecret)).toBe(true);
    expect(await sent(byNew)).toEqual({ listed: 2, standard: true, xpay: true });

    const { previousSignerUntil } = await world.config(configId);
    expect(previousSignerUntil).toBeGreaterThan(Date.now() + 23.9 * HOUR_MS);
    expect(previousSignerUntil).toBeLessThanOrEqual(Date.now() + DAY_MS);
    await world.db.update(webhookConfigs).set({ previousSignerUntil: Date.now() - 1 });
    expect(await sent(byNew)).toEqual({ listed: 1, standard: true, xpay: true });
  });
});

describe('order', () => {
  it('is that of the sequence, over several rounds and more events than one batch [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(...Array.from({ length: 60 }, (_, index) => 1_000 + index));
    await world.emit(5_000, 5_001);
    expect(await world.deliver()).toEqual(NOTHING_LEFT);

    expect(sequences(receiver)).toEqual(Array.from({ length: 62 }, (_, index) => index + 1));
    expect((await world.progress(configId)).at(-1)).toBe('62 DELIVERED 1');
    expect(await world.deliver({ laterMs: DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(62);
  });

  it('holds back later events for three failures of one, then lets them pass [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000, 2_000);
    receiver.answerNext({ status: 500 }, { status: 500 }, { status: 500 });

    const first = await world.deliver();
    expect(first.remaining).toBe(2);
    expect(first.nextDelayMs).toBeGreaterThan(about(5_000).atLeast);
    expect(first.nextDelayMs).toBeLessThanOrEqual(about(5_000).atMost);
    // Too early: nothing is sent.
    expect((await world.deliver({ laterMs: 2_000 })).remaining).toBe(2);
    expect(answers(receiver)).toEqual(['1: 500']);

    const second = await world.deliver({ laterMs: 10_000 });
    expect(second.nextDelayMs).toBeGreaterThan(about(5 * MINUTE_MS).atLeast);
    expect(second.nextDelayMs).toBeLessThanOrEqual(about(5 * MINUTE_MS).atMost);
    expect(await world.progress(configId)).toEqual(['1 PENDING 2', '2 PENDING 0']);

    const third = await world.deliver({ laterMs: 10 * MINUTE_MS });
    expect(third.remaining).toBe(1);
    expect(third.nextDelayMs).toBeGreaterThan(about(30 * MINUTE_MS).atLeast);
    expect(third.nextDelayMs).toBeLessThanOrEqual(about(30 * MINUTE_MS).atMost);
    expect(answers(receiver)).toEqual(['1: 500', '1: 500', '1: 500', '2: 200']);
    expect(await world.progress(configId)).toEqual(['1 PENDING 3', '2 DELIVERED 1']);

    expect(await world.deliver({ laterMs: 2 * HOUR_MS })).toEqual(NOTHING_LEFT);
    expect(answers(receiver).at(-1)).toBe('1: 200');
    expect(await world.progress(configId)).toEqual(['1 DELIVERED 4', '2 DELIVERED 1']);
    expect(await world.deliver({ laterMs: 9 * DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(5);
  });

  it('gives an event up after its tenth failure [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    receiver.answerWith({ status: 503 });
    let laterMs = 0;
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      const { nextDelayMs } = await world.deliver({ laterMs });
      expect(await world.progress(configId)).toEqual([`1 PENDING ${attempt}`]);
      laterMs += (nextDelayMs ?? Number.NaN) + 1_000;
    }
    expect(await world.deliver({ laterMs })).toEqual(NOTHING_LEFT);
    expect(await world.progress(configId)).toEqual(['1 FAILED 10']);
    // Its own jitter apart, the schedule spans 75.6 h: less than the five days that deactivate.
    expect((await world.config(configId)).isActive).toBe(true);
    expect(await world.deliver({ laterMs: laterMs + 2 * DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(10);
  });
});

describe('a configuration among others', () => {
  it('does not wait for another that hangs, also with events that come meanwhile [D-54]', async () => {
    const [dead, alive] = [await startReceiver(), await startReceiver()];
    dead.answerWith('hang');
    const deadId = await world.addConfig({ url: dead.url });
    const aliveId = await world.addConfig({ url: alive.url });
    await world.emit(1_000);
    const delivering = world.deliver();
    await dead.waitFor(1);
    // The round waits for the dead endpoint all the time; nobody else delivers.
    for (const sequence of [2, 3]) {
      await vi.waitFor(async () => {
        const held = await world.db.select().from(deliveryLeases);
        expect(held.map((lease) => lease.configId)).toEqual([deadId]);
      });
      await world.emit(1_000 * sequence);
      await alive.waitFor(sequence);
    }
    expect(dead.received).toHaveLength(1);

    await dead.close();
    receivers = [alive];
    expect((await delivering).remaining).toBe(3);
    expect(sequences(alive)).toEqual([1, 2, 3]);
    expect(await world.progress(aliveId)).toEqual([
      '1 DELIVERED 1',
      '2 DELIVERED 1',
      '3 DELIVERED 1',
    ]);
    expect(await world.progress(deadId)).toEqual(['1 PENDING 1', '2 PENDING 0', '3 PENDING 0']);
  });

  it('gets only what it subscribed to, with the gaps in the sequence that follow [D-50]', async () => {
    const receiver = await startReceiver();
    await world.addConfig({ url: receiver.url, eventTypes: ['intent.success'] });
    await world.emit(1_000);
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(receiver.received).toEqual([]);
  });

  it('is not held up by many events that wait for late attempts [D-54]', async () => {
    const receiver = await startReceiver();
    await world.addConfig({ url: receiver.url });
    await world.emit(...Array.from({ length: 60 }, () => 1_000));
    const nextAttemptAt = Date.now() + HOUR_MS;
    await world.db.update(webhookDeliveries).set({ attempts: 3, nextAttemptAt });
    await world.emit(2_000);
    expect((await world.deliver()).remaining).toBe(60);
    expect(sequences(receiver)).toEqual([61]);
  });

  it('has eight requests in flight at most; who finds no place comes back later [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    receiver.answerWith('hang');
    const streamIds = Array.from({ length: 9 }, (_, index) => `sub_${index}`);
    const deliverStream = (streamId: string) =>
      world.activities.deliverPending({
        merchantId: world.merchantId,
        streamId,
        nowAt: Date.now(),
        handOver: false,
      });
    for (const streamId of streamIds) {
      await world.db.transaction((tx) =>
        appendEvents(tx, { merchantId: world.merchantId, streamId }, [
          {
            type: 'subscription.cycle_charged',
            occurredAt: Date.now(),
            body: (envelope) => ({ ...envelope }),
          },
        ]),
      );
    }
    const hanging = streamIds.slice(0, 8).map((streamId) => deliverStream(streamId));
    await receiver.waitFor(8);
    expect(await deliverStream('sub_8')).toEqual({ remaining: 1, nextDelayMs: 1_000 });
    expect(receiver.received).toHaveLength(8);
    expect((await world.progress(configId)).toSorted()).toEqual(
      Array.from({ length: 9 }, () => '1 PENDING 0'),
    );

    await receiver.close();
    receivers = [];
    const left = await Promise.all(hanging);
    expect(left.map(({ remaining }) => remaining)).toEqual(Array.from({ length: 8 }, () => 1));
  });
});

describe('two who deliver at once', () => {
  it('send each event once [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1, 2, 3, 4, 5, 6, 7, 8);
    await Promise.all([world.deliver(), world.deliver(), world.deliver(), world.deliver()]);
    expect(sequences(receiver)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(new Set(await world.progress(configId)).size).toBe(8);
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(8);
  });

  it('leave no event behind that was committed while the first was still at it [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    const second: Promise<unknown>[] = [];
    receiver.onReceive(async ({ event }) => {
      if (event.sequence > 1) return;
      await world.emit(2_000);
      // Finds the stream held, and leaves it: the first is to look again.
      second.push(world.deliver({ handOver: true }));
      await second[0];
    });
    expect(await world.deliver({ handOver: true })).toEqual(NOTHING_LEFT);

    expect(await Promise.all(second)).toEqual([
      { remaining: 2, nextDelayMs: expect.any(Number) as number },
    ]);
    expect(sequences(receiver)).toEqual([1, 2]);
    expect(await world.progress(configId)).toEqual(['1 DELIVERED 1', '2 DELIVERED 1']);
    expect(world.woken).toEqual([]);
  });

  it('wait for a lease whose holder died, and no longer [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    const lane = { merchantId: world.merchantId, streamId: world.streamId, configId };
    const owner = '00000000-0000-4000-8000-000000000000';
    await world.db.insert(deliveryLeases).values({ ...lane, owner, until: Date.now() + 40_000 });

    const { remaining, nextDelayMs } = await world.deliver();
    expect(remaining).toBe(1);
    expect(nextDelayMs).toBeGreaterThan(30_000);
    expect(nextDelayMs).toBeLessThanOrEqual(40_000);
    expect(receiver.received).toEqual([]);

    await world.db.update(deliveryLeases).set({ until: Date.now() - 1_000 });
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(sequences(receiver)).toEqual([1]);
  });
});

describe('an answer', () => {
  it.each([200, 201, 204, 299])('of %i counts as delivered [D-54]', async (status) => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    receiver.answerWith({ status });
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(await world.progress(configId)).toEqual(['1 DELIVERED 1']);
  });

  it('that redirects is a failure, and is not followed [D-54]', async () => {
    const [receiver, target] = [await startReceiver(), await startReceiver()];
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    receiver.answerWith({ status: 307, headers: { location: target.url } });
    expect((await world.deliver()).remaining).toBe(1);
    expect(await world.progress(configId)).toEqual(['1 PENDING 1']);
    expect(target.received).toEqual([]);
  });

  it('that never ends or is huge is read no further than 64 kB; its status counts [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000, 2_000);
    receiver.answerNext({ status: 200, body: Buffer.alloc(8 * 1024 * 1024, 'x') });
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(await world.progress(configId)).toEqual(['1 DELIVERED 1', '2 DELIVERED 1']);
  });

  it('that asks to wait is heeded [D-54]', async () => {
    const receiver = await startReceiver();
    await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    receiver.answerNext({ status: 429, headers: { 'retry-after': '3600' } });
    const { nextDelayMs } = await world.deliver();
    expect(nextDelayMs).toBeGreaterThan(HOUR_MS - 5_000);
    expect(nextDelayMs).toBeLessThanOrEqual(HOUR_MS);
    await world.deliver({ laterMs: 59 * MINUTE_MS });
    expect(answers(receiver)).toEqual(['1: 429']);
    expect(await world.deliver({ laterMs: 61 * MINUTE_MS })).toEqual(NOTHING_LEFT);
    expect(answers(receiver)).toEqual(['1: 429', '1: 200']);
  });

  it('that does not come because the connection broke is a failure [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    receiver.answerNext('close');
    expect((await world.deliver()).remaining).toBe(1);
    expect(await world.progress(configId)).toEqual(['1 PENDING 1']);
    expect(await world.deliver({ laterMs: 10_000 })).toEqual(NOTHING_LEFT);
    expect(answers(receiver)).toEqual(['1: null', '1: 200']);
  });
});

describe('a configuration', () => {
  it('that answers 410 is deactivated, and what was pending for it dropped [D-54]', async () => {
    const [gone, other] = [await startReceiver(), await startReceiver()];
    const goneId = await world.addConfig({ url: gone.url });
    const otherId = await world.addConfig({ url: other.url });
    await world.emit(1_000, 2_000);
    gone.answerNext({ status: 200 }, { status: 410 });
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(await world.config(goneId)).toMatchObject({
      isActive: false,
      deactivatedReason: 'endpoint_gone',
    });
    expect(await world.progress(goneId)).toEqual(['1 DELIVERED 1', '2 DROPPED 1']);

    await world.emit(3_000);
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(answers(gone)).toEqual(['1: 200', '2: 410']);
    expect(await world.progress(goneId)).toHaveLength(2);
    expect(await world.progress(otherId)).toEqual([
      '1 DELIVERED 1',
      '2 DELIVERED 1',
      '3 DELIVERED 1',
    ]);
  });

  it('that failed for five days without a success is deactivated [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    receiver.answerWith({ status: 500 });
    await world.emit(1_000);
    await world.deliver();
    const { failingSince } = await world.config(configId);
    expect(failingSince).toBeGreaterThan(Date.now() - MINUTE_MS);

    await world.deliver({ laterMs: 5 * DAY_MS - MINUTE_MS });
    expect((await world.config(configId)).isActive).toBe(true);
    expect(await world.deliver({ laterMs: 5 * DAY_MS + MINUTE_MS + HOUR_MS })).toEqual(
      NOTHING_LEFT,
    );
    expect(await world.config(configId)).toMatchObject({
      isActive: false,
      deactivatedReason: 'failing_for_five_days',
    });
    expect(await world.progress(configId)).toEqual(['1 DROPPED 3']);
  });

  it('that succeeds once has its days counted anew [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world.addConfig({ url: receiver.url });
    await changeFailingSince(
      world.db,
      { merchantId: world.merchantId, configId },
      { from: null, to: Date.now() - 6 * DAY_MS },
    );
    await world.emit(1_000, 2_000);
    receiver.answerNext({ status: 200 }, { status: 500 });
    await world.deliver();
    const { isActive, failingSince } = await world.config(configId);
    expect(isActive).toBe(true);
    expect(failingSince).toBeGreaterThan(Date.now() - MINUTE_MS);
  });

  it('that was deleted or switched off gets nothing more, whenever the event was stored [D-54]', async () => {
    const receiver = await startReceiver();
    const deletedId = await world.addConfig({ url: receiver.url });
    const offId = await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    await deleteWebhookConfig(world.db, {
      merchantId: world.merchantId,
      configId: deletedId,
      at: Date.now(),
    });
    expect(await world.progress(deletedId)).toEqual(['1 DROPPED 0']);
    // As a transaction leaves it that stored an event while the configuration was switched off.
    await world.db
      .update(webhookConfigs)
      .set({ isActive: false })
      .where(eq(webhookConfigs.id, offId));
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(await world.progress(offId)).toEqual(['1 DROPPED 0']);
    expect(receiver.received).toEqual([]);
  });

  it('whose secret cannot be opened holds up no other, and loses nothing [D-55]', async () => {
    const [broken, alive] = [await startReceiver(), await startReceiver()];
    const brokenId = await world.addConfig({ url: broken.url });
    const aliveId = await world.addConfig({ url: alive.url });
    const { sealedSigner } = await world.config(brokenId);
    await world.db
      .update(webhookConfigs)
      .set({ sealedSigner: world.sealing.seal(SECRET, 'elsewhere') })
      .where(eq(webhookConfigs.id, brokenId));
    await world.emit(1_000);
    await expect(world.deliver()).rejects.toThrow('belongs elsewhere');
    expect(await world.progress(aliveId)).toEqual(['1 DELIVERED 1']);
    expect(await world.progress(brokenId)).toEqual(['1 PENDING 0']);

    await world.db
      .update(webhookConfigs)
      .set({ sealedSigner })
      .where(eq(webhookConfigs.id, brokenId));
    await world.db.update(deliveryLeases).set({ until: Date.now() - 1_000 });
    expect(await world.deliver()).toEqual(NOTHING_LEFT);
    expect(sequences(broken)).toEqual([1]);
  });
});

describe('what is left', () => {
  it('is handed over to the stream workflow by everybody but itself [D-54]', async () => {
    const receiver = await startReceiver();
    await world.addConfig({ url: receiver.url });
    await world.emit(1_000);
    receiver.answerNext({ status: 500 }, { status: 500 });
    expect((await world.deliver({ handOver: true })).remaining).toBe(1);
    expect(world.woken).toEqual([world.streamId]);
    expect((await world.deliver({ laterMs: 10_000, handOver: false })).remaining).toBe(1);
    expect(world.woken).toEqual([world.streamId]);
    expect(await world.deliver({ laterMs: HOUR_MS, handOver: true })).toEqual(NOTHING_LEFT);
    expect(world.woken).toEqual([world.streamId]);
  });

  it('is nothing where nobody subscribed [D-50]', async () => {
    await world.emit(1_000);
    expect(await world.deliver({ handOver: true })).toEqual(NOTHING_LEFT);
    expect(world.woken).toEqual([]);
  });
});
