import type { SQL } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, vi } from 'vitest';
import { createWebhookActivities } from '../../activities/webhooks.ts';
import type { Db } from '../../db/client.ts';
import { appendEvents } from '../../db/repositories/outbox.ts';
import { updateWebhookConfig } from '../../db/repositories/webhook-configs.ts';
import { deliveryLeases } from '../../db/schema/delivery-leases.ts';
import { webhookConfigs } from '../../db/schema/webhook-configs.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import { gate } from '../support/gate.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';
import { SECRET, webhookWorlds } from '../support/webhook-world.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const NOTHING_LEFT = { remaining: 0, nextDelayMs: null };
/** Within ±20 % of a wait; upper bound with a second of run time. */
const about = (baseMs: number) => ({
  atLeast: baseMs * 0.8 - 1_000,
  atMost: baseMs * 1.2,
});

const { startReceiver, world } = webhookWorlds();

const sequences = (receiver: WebhookReceiver) =>
  receiver.received.map(({ event }) => event.sequence);
const answers = (receiver: WebhookReceiver) =>
  receiver.received.map(({ event, answered }) => `${event.sequence}: ${answered}`);

/** The database, whose answer to the `nth` look for lanes is heard later than it was given. */
function hearsLate(db: Db, nth: number, heard: Promise<void>) {
  let looks = 0;
  const answered = gate();
  const execute = async (query: SQL) => {
    const rows = await db.execute(query);
    const isLook = rows.some((row) => 'isTaken' in row);
    if (isLook && (looks += 1) === nth) {
      answered.open();
      await heard;
    }
    return rows;
  };
  const get = (_: Db, name: keyof Db): unknown => (name === 'execute' ? execute : db[name]);
  return { db: new Proxy(db, { get }), isAnswered: answered.isOpen };
}

describe('what is sent', () => {
  it('carries both signatures over the exact bytes that are sent [D-53]', async () => {
    const receiver = await startReceiver();
    await world().addConfig({ url: receiver.url });
    await world().emit(1_999);
    expect(await world().deliver()).toEqual(NOTHING_LEFT);

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
    await world().addConfig({ url: receiver.url });
    await world().emit(1_999);
    receiver.answerNext({ status: 500 }, { status: 404 });
    for (const laterMs of [0, 10_000, 20 * MINUTE_MS]) await world().deliver({ laterMs });

    expect(answers(receiver)).toEqual(['1: 500', '1: 404', '1: 200']);
    expect(new Set(receiver.received.map(({ rawBody }) => rawBody.toString('hex'))).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(receiver.received.every((webhook) => webhook.isStandardSignatureValid)).toBe(true);
  });

  it('is signed with the old secret too for 24 h after a change, in the list only [D-53]', async () => {
    const newSecret = 'brand new secret';
    const [byOld, byNew] = [await startReceiver(SECRET), await startReceiver(newSecret)];
    const configId = await world().addConfig({ url: byOld.url });
    const change = (url: string, secret: string) =>
      updateWebhookConfig(world().db, {
        merchantId: world().merchantId,
        configId,
        url,
        eventTypes: ['subscription.cycle_charged'],
        reseal: (stored) =>
          world().sealing.open(stored, configId) === secret
            ? null
            : { sealedSigner: world().sealing.seal(secret, configId), isStoredReadable: true },
        at: Date.now(),
      });
    const sent = async (receiver: WebhookReceiver) => {
      await world().emit(1_999);
      expect(await world().deliver()).toEqual(NOTHING_LEFT);
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

    const { previousSignerUntil } = await world().config(configId);
    expect(previousSignerUntil).toBeGreaterThan(Date.now() + 23.9 * HOUR_MS);
    expect(previousSignerUntil).toBeLessThanOrEqual(Date.now() + DAY_MS);
    await world()
      .db.update(webhookConfigs)
      .set({ previousSignerUntil: Date.now() - 1 });
    expect(await sent(byNew)).toEqual({ listed: 1, standard: true, xpay: true });
  });
});

describe('order', () => {
  it('is that of the sequence, over several rounds and more events than one batch [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    await world().emit(...Array.from({ length: 60 }, (_, index) => 1_000 + index));
    await world().emit(5_000, 5_001);
    expect(await world().deliver()).toEqual(NOTHING_LEFT);

    expect(sequences(receiver)).toEqual(Array.from({ length: 62 }, (_, index) => index + 1));
    expect((await world().progress(configId)).at(-1)).toBe('62 DELIVERED 1');
    expect(await world().deliver({ laterMs: DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(62);
  });

  it('holds back later events for three failures of one, then lets them pass [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    await world().emit(1_000, 2_000);
    receiver.answerNext({ status: 500 }, { status: 500 }, { status: 500 });

    const first = await world().deliver();
    expect(first.remaining).toBe(2);
    expect(first.nextDelayMs).toBeGreaterThan(about(5_000).atLeast);
    expect(first.nextDelayMs).toBeLessThanOrEqual(about(5_000).atMost);
    // Too early: nothing is sent.
    expect((await world().deliver({ laterMs: 2_000 })).remaining).toBe(2);
    expect(answers(receiver)).toEqual(['1: 500']);

    const second = await world().deliver({ laterMs: 10_000 });
    expect(second.nextDelayMs).toBeGreaterThan(about(5 * MINUTE_MS).atLeast);
    expect(second.nextDelayMs).toBeLessThanOrEqual(about(5 * MINUTE_MS).atMost);
    expect(await world().progress(configId)).toEqual(['1 PENDING 2', '2 PENDING 0']);

    const third = await world().deliver({ laterMs: 10 * MINUTE_MS });
    expect(third.remaining).toBe(1);
    expect(third.nextDelayMs).toBeGreaterThan(about(30 * MINUTE_MS).atLeast);
    expect(third.nextDelayMs).toBeLessThanOrEqual(about(30 * MINUTE_MS).atMost);
    expect(answers(receiver)).toEqual(['1: 500', '1: 500', '1: 500', '2: 200']);
    expect(await world().progress(configId)).toEqual(['1 PENDING 3', '2 DELIVERED 1']);

    expect(await world().deliver({ laterMs: 2 * HOUR_MS })).toEqual(NOTHING_LEFT);
    expect(answers(receiver).at(-1)).toBe('1: 200');
    expect(await world().progress(configId)).toEqual(['1 DELIVERED 4', '2 DELIVERED 1']);
    expect(await world().deliver({ laterMs: 9 * DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(5);
  });

  it('gives an event up after its tenth failure [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    await world().emit(1_000);
    receiver.answerWith({ status: 503 });
    let laterMs = 0;
    for (let attempt = 1; attempt <= 9; attempt += 1) {
      const { nextDelayMs } = await world().deliver({ laterMs });
      expect(await world().progress(configId)).toEqual([`1 PENDING ${attempt}`]);
      laterMs += (nextDelayMs ?? Number.NaN) + 1_000;
    }
    expect(await world().deliver({ laterMs })).toEqual(NOTHING_LEFT);
    expect(await world().progress(configId)).toEqual(['1 FAILED 10']);
    // Its own jitter apart, the schedule spans 75.6 h: less than the five days that deactivate.
    expect((await world().config(configId)).isActive).toBe(true);
    expect(await world().deliver({ laterMs: laterMs + 2 * DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(10);
  });
});

describe('a configuration among others', () => {
  it('does not wait for another that hangs, also with events that come meanwhile [D-54]', async () => {
    const [dead, alive] = [await startReceiver(), await startReceiver()];
    dead.answerWith('hang');
    const deadId = await world().addConfig({ url: dead.url });
    const aliveId = await world().addConfig({ url: alive.url });
    await world().emit(1_000);
    const delivering = world().deliver();
    await dead.waitFor(1);
    // The round waits for the dead endpoint all the time; nobody else delivers.
    for (const sequence of [2, 3]) {
      await vi.waitFor(async () => {
        const held = await world().db.select().from(deliveryLeases);
        expect(held.map((lease) => lease.configId)).toEqual([deadId]);
      });
      await world().emit(1_000 * sequence);
      await alive.waitFor(sequence);
    }
    expect(dead.received).toHaveLength(1);

    await dead.close();
    expect((await delivering).remaining).toBe(3);
    expect(sequences(alive)).toEqual([1, 2, 3]);
    expect(await world().progress(aliveId)).toEqual([
      '1 DELIVERED 1',
      '2 DELIVERED 1',
      '3 DELIVERED 1',
    ]);
    expect(await world().progress(deadId)).toEqual(['1 PENDING 1', '2 PENDING 0', '3 PENDING 0']);
  });

  it('gets only what it subscribed to, with the gaps in the sequence that follow [D-50]', async () => {
    const receiver = await startReceiver();
    await world().addConfig({ url: receiver.url, eventTypes: ['intent.success'] });
    await world().emit(1_000);
    expect(await world().deliver()).toEqual(NOTHING_LEFT);
    expect(receiver.received).toEqual([]);
  });

  it('is not held up by many events that wait for late attempts [D-54]', async () => {
    const receiver = await startReceiver();
    await world().addConfig({ url: receiver.url });
    await world().emit(...Array.from({ length: 60 }, () => 1_000));
    const nextAttemptAt = Date.now() + HOUR_MS;
    await world().db.update(webhookDeliveries).set({ attempts: 3, nextAttemptAt });
    await world().emit(2_000);
    expect((await world().deliver()).remaining).toBe(60);
    expect(sequences(receiver)).toEqual([61]);
  });

  it('has eight requests in flight at most; who finds no place comes back later [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    receiver.answerWith('hang');
    const streamIds = Array.from({ length: 9 }, (_, index) => `sub_${index}`);
    const deliverStream = (streamId: string) =>
      world().activities.deliverPending({
        merchantId: world().merchantId,
        streamId,
        nowAt: Date.now(),
        handOver: false,
      });
    for (const streamId of streamIds) {
      await world().db.transaction((tx) =>
        appendEvents(tx, { merchantId: world().merchantId, streamId }, [
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
    expect((await world().progress(configId)).toSorted()).toEqual(
      Array.from({ length: 9 }, () => '1 PENDING 0'),
    );

    await receiver.close();
    const left = await Promise.all(hanging);
    expect(left.map(({ remaining }) => remaining)).toEqual(Array.from({ length: 8 }, () => 1));
  });
});

describe('two who deliver at once', () => {
  it('send each event once [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    await world().emit(1, 2, 3, 4, 5, 6, 7, 8);
    await Promise.all([world().deliver(), world().deliver(), world().deliver(), world().deliver()]);
    expect(sequences(receiver)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(new Set(await world().progress(configId)).size).toBe(8);
    expect(await world().deliver()).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(8);
  });

  it('leave no event behind that was committed while the first was still at it [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    await world().emit(1_000);
    const second: Promise<unknown>[] = [];
    receiver.onReceive(async ({ event }) => {
      if (event.sequence > 1) return;
      await world().emit(2_000);
      // Finds the stream held, and leaves it: the first is to look again.
      second.push(world().deliver({ handOver: true }));
      await second[0];
    });
    expect(await world().deliver({ handOver: true })).toEqual(NOTHING_LEFT);

    expect(await Promise.all(second)).toEqual([
      { remaining: 2, nextDelayMs: expect.any(Number) as number },
    ]);
    expect(sequences(receiver)).toEqual([1, 2]);
    expect(await world().progress(configId)).toEqual(['1 DELIVERED 1', '2 DELIVERED 1']);
    expect(world().woken).toEqual([]);
  });

  it('leave no event behind when the last lane ends before its holder has heard what is due [D-54]', async () => {
    const [quick, slow] = [await startReceiver(), await startReceiver()];
    await world().addConfig({ url: quick.url });
    const slowId = await world().addConfig({ url: slow.url });
    const [slowIsAsked, slowMayAnswer, heard] = [gate(), gate(), gate()];
    quick.onReceive(() => slowIsAsked.isOpen);
    slow.onReceive(async () => {
      slowIsAsked.open();
      await slowMayAnswer.isOpen;
    });
    const late = hearsLate(world().db, 2, heard.isOpen);
    const { merchantId, streamId, sealing, activities } = world();
    const input = { merchantId, streamId, nowAt: Date.now(), handOver: true };
    const wakeStream = async () => expect.fail('nothing is left');
    const deps = { db: late.db, sealing, wakeStream, allowLoopback: true };
    const holder = createWebhookActivities(deps);

    await world().emit(1_000);
    const first = holder.deliverPending(input);
    await late.isAnswered;
    await world().emit(2_000);
    // Finds the slow lane held, and leaves it.
    expect((await activities.deliverPending(input)).remaining).toBe(2);
    slowMayAnswer.open();
    await vi.waitFor(async () => {
      expect(await world().progress(slowId)).toEqual(['1 DELIVERED 1', '2 PENDING 0']);
    }, 10_000);
    heard.open();
    expect(await first).toEqual(NOTHING_LEFT);
    expect(sequences(slow)).toEqual([1, 2]);
    expect(sequences(quick)).toEqual([1, 2]);
  });

  it('wait for a lease whose holder died, and no longer [D-54]', async () => {
    const receiver = await startReceiver();
    const configId = await world().addConfig({ url: receiver.url });
    await world().emit(1_000);
    const lane = { merchantId: world().merchantId, streamId: world().streamId, configId };
    const owner = '00000000-0000-4000-8000-000000000000';
    await world()
      .db.insert(deliveryLeases)
      .values({ ...lane, owner, until: Date.now() + 40_000 });

    const { remaining, nextDelayMs } = await world().deliver();
    expect(remaining).toBe(1);
    expect(nextDelayMs).toBeGreaterThan(30_000);
    expect(nextDelayMs).toBeLessThanOrEqual(40_000);
    expect(receiver.received).toEqual([]);

    await world()
      .db.update(deliveryLeases)
      .set({ until: Date.now() - 1_000 });
    expect(await world().deliver()).toEqual(NOTHING_LEFT);
    expect(sequences(receiver)).toEqual([1]);
  });
});

describe('what is left', () => {
  it('is handed over to the stream workflow by everybody but itself [D-54]', async () => {
    const receiver = await startReceiver();
    await world().addConfig({ url: receiver.url });
    await world().emit(1_000);
    receiver.answerNext({ status: 500 }, { status: 500 });
    expect((await world().deliver({ handOver: true })).remaining).toBe(1);
    expect(world().woken).toEqual([world().streamId]);
    expect((await world().deliver({ laterMs: 10_000, handOver: false })).remaining).toBe(1);
    expect(world().woken).toEqual([world().streamId]);
    expect(await world().deliver({ laterMs: HOUR_MS, handOver: true })).toEqual(NOTHING_LEFT);
    expect(world().woken).toEqual([world().streamId]);
  });

  it('is nothing where nobody subscribed [D-50]', async () => {
    await world().emit(1_000);
    expect(await world().deliver({ handOver: true })).toEqual(NOTHING_LEFT);
    expect(world().woken).toEqual([]);
  });
});
