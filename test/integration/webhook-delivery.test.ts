import { eq, isNull } from 'drizzle-orm';
import { Webhook } from 'standardwebhooks';
import { describe, expect } from 'vitest';
import { webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import type { WebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import { gate } from '../support/gate.ts';
import {
  answers,
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  NOTHING_LEFT,
  onWebhookQueues as it,
  SECRET,
  sequences,
  streamIds,
} from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';

/** Delivers, and measures how long this takes. */
async function timedDelivery(env: WebhookEnvironment, laterMs = 0) {
  const startedAt = performance.now();
  const { remaining, nextDelayMs } = await env.deliver({ laterMs });
  const tookMs = performance.now() - startedAt;
  return {
    remaining,
    /** The next attempt is due at this time, in ms after the start of the test environment, or earlier. */
    nextMs: laterMs + tookMs + (nextDelayMs ?? Number.NaN),
    /** Expects that the failed attempt is repeated after `baseMs` with a jitter of ±20 %, however long it took. */
    expectDelay(baseMs: number): void {
      expect(nextDelayMs).toBeLessThanOrEqual(baseMs * 1.2);
      expect((nextDelayMs ?? Number.NaN) + tookMs).toBeGreaterThanOrEqual(baseMs * 0.8);
    },
  };
}

/** Changes the URL. Without `secret` the secret stays. */
async function changeUrl(
  env: WebhookEnvironment,
  configId: string,
  url: string,
  secret?: string,
): Promise<void> {
  const sealedSigner = secret && env.sealing.seal(secret, configId);
  const reseal = () => (sealedSigner ? { sealedSigner, isStoredReadable: true } : null);
  await env.changeConfig(configId, { url, reseal });
}

const drainOnce = ({ activities, merchantId }: WebhookEnvironment, configId: string) =>
  activities.drainEndpoint({ merchantId, configId, nowAt: Date.now() });

/** Makes the receiver hold its requests until eight are in flight and `change` has ended. */
function changeAtEighth(receiver: WebhookReceiver, change: () => Promise<void>): void {
  const changed = gate();
  receiver.onReceive(async () => {
    if (receiver.received.length === 8) {
      await change();
      changed.open();
    }
    await changed.isOpen;
  });
}

describe('a stream in flight', () => {
  it.for(['committing process', 'queue'] as const)(
    'sends nothing more to the old address after the configuration was deleted, by the %s [D-55]',
    async (way, { env }) => {
      const { receiver, configId } = await env.startEndpoint();
      await env.emit(1, 2, 3);
      receiver.onReceive(async () => void (await env.deleteConfig(configId)));
      await (way === 'queue' ? env.deliver() : env.dispatch());
      expect(sequences(receiver)).toEqual([1]);
      await env.dispatch();
      await env.deliver({ laterMs: HOUR_MS });
      expect(sequences(receiver)).toEqual([1]);
    },
  );

  it.for(['committing process', 'queue'] as const)(
    'sends its later events to the new address after the URL was changed, by the %s [D-55]',
    async (way, { env }) => {
      const [old, other] = [await env.startReceiver(), await env.startReceiver()];
      const configId = await env.addConfig({ url: old.url });
      await env.emit(1, 2, 3);
      old.onReceive(() => changeUrl(env, configId, other.url));
      await (way === 'queue' ? env.deliver() : env.dispatch());
      expect([sequences(old), sequences(other)]).toEqual([[1], [2, 3]]);
      await env.deliver({ laterMs: HOUR_MS });
      expect([sequences(old), sequences(other)]).toEqual([[1], [2, 3]]);
    },
  );
});

it('a failure at a URL that the merchant has changed meanwhile does not count, and the event is due at the new URL [D-54]', async ({
  env,
}) => {
  const { receiver: old, configId } = await env.startEndpoint();
  const other = await env.startReceiver();
  await env.emit(1_000);
  await env.db.update(webhookDeliveries).set({ attempts: 9 });
  old.answerWith({ status: 500 });
  old.onReceive(() => changeUrl(env, configId, other.url));
  await drainOnce(env, configId);
  expect(await env.deliver()).toEqual(NOTHING_LEFT);
  expect([answers(old), answers(other)]).toEqual([['1: 500'], ['1: 200']]);
  expect(await env.progress(configId)).toEqual(['1 DELIVERED 10']);
});

describe('a delivered event', () => {
  it('carries both signatures over the exact bytes of its body [D-53, IF-6]', async ({ env }) => {
    const { receiver } = await env.startEndpoint();
    await env.emit(1_999);
    expect(await env.deliver()).toEqual(NOTHING_LEFT);

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

  it('has signatures of both secrets for 24 h after a change, in webhook-signature only [D-53]', async ({
    env,
  }) => {
    const newSecret = 'brand new secret';
    const [byOld, byNew] = [await env.startReceiver(SECRET), await env.startReceiver(newSecret)];
    const configId = await env.addConfig({ url: byOld.url });
    const change = (url: string, secret: string) =>
      env.changeConfig(configId, {
        url,
        reseal: (stored) =>
          env.sealing.open(stored, configId) === secret
            ? null
            : { sealedSigner: env.sealing.seal(secret, configId), isStoredReadable: true },
      });
    const sent = async (receiver: WebhookReceiver) => {
      await env.emit(1_999);
      expect(await env.deliver()).toEqual(NOTHING_LEFT);
      const webhook = receiver.received.at(-1);
      return {
        listed: String(webhook?.headers['webhook-signature']).split(' ').length,
        standard: webhook?.isStandardSignatureValid,
        xpay: webhook?.isXpaySignatureValid,
      };
    };

    expect(await change(byOld.url, newSecret)).toBeNull();
    expect(await sent(byOld)).toEqual({ listed: 2, standard: true, xpay: false });
    // An update with the same secret does not shorten the 24 h of the old secret.
    expect(await change(byNew.url, newSecret)).toBeNull();
    expect(await sent(byNew)).toEqual({ listed: 2, standard: true, xpay: true });

    const { previousSignerUntil } = await env.config(configId);
    expect(previousSignerUntil).toBeGreaterThan(Date.now() + 23.9 * HOUR_MS);
    expect(previousSignerUntil).toBeLessThanOrEqual(Date.now() + DAY_MS);
    await env.setConfig(configId, { previousSignerUntil: Date.now() - 1 });
    expect(await sent(byNew)).toEqual({ listed: 1, standard: true, xpay: true });
  });
});

describe('an event', () => {
  it('is delivered in the order of the sequence when events fill two batches [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(...Array.from({ length: 60 }, (_, index) => 1_000 + index));
    await env.emit(5_000, 5_001);
    expect(await env.deliver()).toEqual(NOTHING_LEFT);

    expect(sequences(receiver)).toEqual(Array.from({ length: 62 }, (_, index) => index + 1));
    expect((await env.progress(configId)).at(-1)).toBe('62 DELIVERED 1');
    expect(await env.deliver({ laterMs: DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(62);
  });

  it('delays the later events of its stream until it is delivered or has failed three times [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000, 2_000);
    receiver.answerNext({ status: 500 }, { status: 500 }, { status: 500 });

    const first = await timedDelivery(env);
    expect(first.remaining).toBe(2);
    first.expectDelay(5_000);
    // After 2 s nothing is due yet, so nothing is sent.
    expect((await env.deliver({ laterMs: 2_000 })).remaining).toBe(2);
    expect(answers(receiver)).toEqual(['1: 500']);

    const second = await timedDelivery(env, MINUTE_MS);
    second.expectDelay(5 * MINUTE_MS);
    expect(await env.progress(configId)).toEqual(['1 PENDING 2', '2 PENDING 0']);

    const third = await timedDelivery(env, 10 * MINUTE_MS);
    expect(third.remaining).toBe(1);
    third.expectDelay(30 * MINUTE_MS);
    expect(answers(receiver)).toEqual(['1: 500', '1: 500', '1: 500', '2: 200']);
    expect(await env.progress(configId)).toEqual(['1 PENDING 3', '2 DELIVERED 1']);

    expect(await env.deliver({ laterMs: 2 * HOUR_MS })).toEqual(NOTHING_LEFT);
    expect(answers(receiver).at(-1)).toBe('1: 200');
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 4', '2 DELIVERED 1']);
    expect(await env.deliver({ laterMs: 9 * DAY_MS })).toEqual(NOTHING_LEFT);
    expect(receiver.received).toHaveLength(5);
  });
});

describe('a webhook configuration', () => {
  it('gets a new event at once when 60 others wait for later attempts [D-54]', async ({ env }) => {
    const { receiver } = await env.startEndpoint();
    await env.emit(...Array.from({ length: 60 }, () => 1_000));
    const nextAttemptAt = Date.now() + HOUR_MS;
    await env.db.update(webhookDeliveries).set({ attempts: 3, nextAttemptAt });
    await env.emit(2_000);
    expect((await env.deliver()).remaining).toBe(60);
    expect(sequences(receiver)).toEqual([61]);
  });
});

describe('a change of a webhook configuration during a drain', () => {
  it('sends events that are committed after it to the new URL only, signed with the new secret [IF-4.15, D-53]', async ({
    env,
  }) => {
    const newSecret = 'brand new secret';
    const [old, fresh] = [await env.startReceiver(SECRET), await env.startReceiver(newSecret)];
    const configId = await env.addConfig({ url: old.url });
    await env.emitTo('sub_a');
    old.onReceive(async () => {
      if (old.received.length > 1) return;
      await changeUrl(env, configId, fresh.url, newSecret);
      await env.emitTo('sub_b');
    });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(old.received.map(({ event }) => event['streamId'])).toEqual(['sub_a']);
    expect(fresh.received).toMatchObject([
      { event: { streamId: 'sub_b' }, isStandardSignatureValid: true, isXpaySignatureValid: true },
    ]);

    expect(await env.deliver({ laterMs: DAY_MS })).toEqual(NOTHING_LEFT);
    expect([old.received.length, fresh.received.length]).toEqual([1, 1]);
  });

  it('keeps the breaker closed when a failure was recorded before it and eight requests fail after it [D-54, D-55]', async ({
    env,
  }) => {
    const [old, fresh] = [await env.startReceiver(), await env.startReceiver()];
    const configId = await env.addConfig({ url: old.url });
    await env.db
      .update(webhookConfigs)
      .set({ consecutiveFailures: 1, failingSince: Date.now() - MINUTE_MS });
    await env.emitTo(...streamIds(8));
    old.answerWith({ status: 500 });
    changeAtEighth(old, () => changeUrl(env, configId, fresh.url));
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(await env.config(configId)).toMatchObject({
      consecutiveFailures: 0,
      pausedUntil: null,
      failingSince: null,
    });
    expect(await env.deliver({ laterMs: MINUTE_MS })).toEqual(NOTHING_LEFT);
    expect([old.received.length, fresh.received.length]).toEqual([8, 8]);
  });

  it('sends claimed events to the new URL when the old URL then answers 410 [D-54, D-55]', async ({
    env,
  }) => {
    const [old, fresh] = [await env.startReceiver(), await env.startReceiver()];
    const configId = await env.addConfig({ url: old.url });
    await env.emitTo(...streamIds(16));
    old.answerNext({ status: 410 });
    const changed = gate();
    const isReleased = isNull(webhookDeliveries.claimedUntil);
    old.onReceive(async ({ answered }) => {
      if (old.received.length === 8) {
        await changeUrl(env, configId, fresh.url);
        changed.open();
      }
      await changed.isOpen;
      if (answered === 410) return;
      // The other requests end after the answer 410 is recorded.
      await expect.poll(() => env.db.$count(webhookDeliveries, isReleased)).toBeGreaterThan(0);
    });
    expect(await drainOnce(env, configId)).toEqual({ ...NOTHING_LEFT, pausedMs: 0 });
    expect([old.received.length, fresh.received.length]).toEqual([8, 9]);
    expect(await env.deliver({ laterMs: DAY_MS })).toEqual(NOTHING_LEFT);
    expect([old.received.length, fresh.received.length]).toEqual([8, 9]);
    expect(await env.config(configId)).toMatchObject({ isActive: true, consecutiveFailures: 0 });
  });
});

describe('concurrent drains of one endpoint', () => {
  it('skip a delivery that a crashed process has claimed until the claim expires [D-54]', async ({
    env,
  }) => {
    const { receiver } = await env.startEndpoint();
    await env.emit(1_000, 2_000);
    const isFirst = eq(webhookDeliveries.sequence, 1);
    const claim = (claimedUntil: number) =>
      env.db.update(webhookDeliveries).set({ claimedUntil }).where(isFirst);
    await claim(Date.now() + 40_000);
    expect(await env.deliver()).toEqual({ remaining: 2, nextDelayMs: 1_000 });
    expect(receiver.received).toEqual([]);

    await claim(Date.now() - 1_000);
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(sequences(receiver)).toEqual([1, 2]);
  });

  it('record a delivery once when the answer arrives after the delivery’s claim has expired [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    receiver.answerNext({ status: 500 });
    // During the first request the delivery's claim expires, and another process sends the event.
    receiver.onReceive(async () => {
      if (receiver.received.length > 1) return;
      await env.db.update(webhookDeliveries).set({ claimedUntil: Date.now() - 1 });
      expect(await env.deliver({ process: env.startProcess() })).toEqual(NOTHING_LEFT);
    });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    expect(answers(receiver)).toEqual(['1: 500', '1: 200']);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1']);
  });
});
