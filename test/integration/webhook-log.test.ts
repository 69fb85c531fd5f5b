import { eq } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { attemptsOfEndpoint, attemptsOfEvent } from '../../db/repositories/webhooks/attempts.ts';
import type { Attempt } from '../../db/repositories/webhooks/attempts.ts';
import {
  deactivateWebhookConfig,
  listWebhookConfigs,
} from '../../db/repositories/webhooks/configs.ts';
import { findRecovery, recoverMissed, resendEvent } from '../../db/repositories/webhooks/resend.ts';
import type { MissedKind } from '../../db/repositories/webhooks/resend.ts';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import { deleteOldAttempts, deleteOldEvents } from '../../db/repositories/sweeps/retention.ts';
import { assignPositions } from '../../db/repositories/webhooks/feed.ts';
import { outboxEvents, webhookAttempts } from '../../db/schema/webhooks.ts';
import {
  answers,
  DAY_MS,
  HOUR_MS,
  NOTHING_LEFT,
  onWebhookQueues as it,
  sequences,
} from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';
import type { ReceivedWebhook } from '../../tools/scripts/client/webhook-receiver.ts';

const MINUTE_MS = 60_000;

/** An attempt in one line: number, manual, status or error, answer, whether a further one is planned. */
const lineOf = ({ attempt, isManual, httpStatus, error, answer, nextAttemptAt }: Attempt) =>
  [
    attempt,
    isManual ? 'manual' : 'automatic',
    httpStatus ?? '-',
    error ?? '-',
    JSON.stringify(answer),
    nextAttemptAt === null ? 'last' : 'more',
  ].join(' ');

async function onlyEvent({ db }: WebhookEnvironment): Promise<string> {
  const events = await db.select({ id: outboxEvents.id }).from(outboxEvents);
  expect(events).toHaveLength(1);
  return events[0]!.id;
}

async function logOf(env: WebhookEnvironment, eventId: string) {
  const attempts = await attemptsOfEvent(env.db, { merchantId: env.merchantId, eventId });
  return attempts.map(lineOf);
}

/** Deactivates the endpoint as five days of failures do, and drops what waits. */
async function deactivate(env: WebhookEnvironment, configId: string) {
  const { updatedAt: readUpdatedAt } = await env.config(configId);
  const reason = 'failing_for_five_days' as const;
  const ref = { merchantId: env.merchantId, configId };
  await deactivateWebhookConfig(env.db, { ...ref, readUpdatedAt, reason, at: Date.now() });
  await env.deliver();
}

const recover = (
  { db, merchantId }: WebhookEnvironment,
  configId: string,
  kinds: readonly MissedKind[] = ['failed', 'dropped', 'missing'],
  recoveryId = 'rec_1',
  untilInMs = 1_000,
) =>
  db.transaction((tx) => {
    const at = Date.now();
    const untilAt = at + untilInMs;
    const request = { merchantId, configId, recoveryId, sinceAt: at - DAY_MS, untilAt };
    return recoverMissed(tx, { ...request, kinds, at });
  });

async function missedOf({ db, merchantId }: WebhookEnvironment): Promise<number[]> {
  const configs = await listWebhookConfigs(db, merchantId, { includeInactive: true });
  return configs.map(({ missedEvents }) => missedEvents);
}

describe('the log', () => {
  it('has every attempt with the beginning of its answer, without NUL, bad UTF-8 and the target of a redirect [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerNext(
      { status: 500, body: 'é'.repeat(1_200) },
      { status: 302, headers: { location: 'https://other.example/' }, body: 'see https://other' },
      // A request on a kept connection would be repeated.
      {
        status: 503,
        headers: { connection: 'close' },
        body: Buffer.from([0x61, 0x00, 0xff, 0x62]),
      },
      'close',
      { status: 200, body: 'thanks' },
    );
    await env.emit(1_000);
    for (const laterMs of [0, 10_000, 10 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS]) {
      await env.deliver({ laterMs });
    }
    const eventId = await onlyEvent(env);
    expect(await logOf(env, eventId)).toEqual([
      `1 automatic 500 - "${'é'.repeat(1_000)}" more`,
      '2 automatic 302 redirect null more',
      '3 automatic 503 - "a��b" more',
      '4 automatic - reset null more',
      '5 automatic 200 - "thanks" last',
    ]);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 5']);
    expect(await env.deliver({ laterMs: 90 * HOUR_MS })).toEqual(NOTHING_LEFT);
  });

  it('of an endpoint is paged from the latest, and filtered by outcome and time [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerNext({ status: 500 }, { status: 200 }, { status: 200 });
    await env.emitTo('sub_1', 'sub_2');
    await env.deliver();
    await env.deliver({ laterMs: 10_000 });
    const query = { merchantId: env.merchantId, configId, limit: 2 };
    const first = await attemptsOfEndpoint(env.db, query);
    const rest = await attemptsOfEndpoint(env.db, { ...query, before: first.at(-1) });
    const shown = (attempts: Attempt[]) => attempts.map(({ httpStatus }) => httpStatus);
    expect([first.length, rest.length]).toEqual([2, 1]);
    const all = [...first, ...rest];
    expect(shown(all).filter((status) => status === 200)).toHaveLength(2);
    expect(shown(all)).toContain(500);
    expect(all.map(({ at }) => at)).toEqual(all.map(({ at }) => at).toSorted((a, b) => b - a));
    expect(shown(await attemptsOfEndpoint(env.db, { ...query, outcome: 'failed' }))).toEqual([500]);
    const delivered = { ...query, outcome: 'delivered' } as const;
    expect(shown(await attemptsOfEndpoint(env.db, delivered))).toEqual([200, 200]);
    const sinceAt = first[0]!.at + 1;
    expect(await attemptsOfEndpoint(env.db, { ...query, sinceAt })).toEqual([]);
    const other = { ...query, merchantId: await env.addMerchant() };
    expect(await attemptsOfEndpoint(env.db, other)).toEqual([]);
  });
});

describe('the retention sweep', () => {
  it('deletes bodies and failed attempts after the number of days that the merchant has set for each [D-56, D-40]', async ({
    env,
  }) => {
    const { db, merchantId } = env;
    const { receiver } = await env.startEndpoint();
    receiver.answerNext({ status: 500 });
    await env.emit(1_000);
    await env.deliver();
    await env.deliver({ laterMs: MINUTE_MS });
    await assignPositions(db, merchantId);
    const eventId = await onlyEvent(env);
    const at = Date.now() - 8 * DAY_MS;
    await db.update(outboxEvents).set({ insertedAt: at });
    await db.update(webhookAttempts).set({ at });
    const deletion = { before: Date.now() - 30 * DAY_MS, limit: 10 };
    const deleted = async () => [
      await deleteOldAttempts(db, deletion),
      await deleteOldEvents(db, deletion),
    ];
    const nothing = { bodies: 0, deliveries: 0 };
    expect(await deleted()).toEqual([0, nothing]);
    await changeSettings(db, merchantId, { webhookRetention: { bodyDays: 9, attemptDays: 7 } });
    expect(await deleted()).toEqual([1, nothing]);
    expect(await logOf(env, eventId)).toEqual(['2 automatic 200 - null last']);
    await changeSettings(db, merchantId, { webhookRetention: { bodyDays: 7, attemptDays: 7 } });
    expect(await deleted()).toEqual([0, { bodies: 1, deliveries: 1 }]);
    expect(await deleted()).toEqual([0, nothing]);
  });
});

describe('an event that is sent again', () => {
  it('has the same id and bytes, delays no later event while it fails, and ends [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    await env.deliver();
    const eventId = await onlyEvent(env);
    const request = { merchantId: env.merchantId, configId, eventId, at: Date.now() };
    const sent = await env.db.transaction((tx) => resendEvent(tx, request));
    expect(sent).toEqual([configId]);
    expect(await env.progress(configId)).toEqual(['1 PENDING 1']);

    receiver.answerNext({ status: 500 });
    await env.deliver();
    await env.emit(2_000);
    await env.deliver();
    expect(answers(receiver)).toEqual(['1: 200', '1: 500', '2: 200']);
    await env.deliver({ laterMs: MINUTE_MS });
    expect(answers(receiver)).toEqual(['1: 200', '1: 500', '2: 200', '1: 200']);
    const [first, second] = receiver.received;
    expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
    expect(second!.rawBody.equals(first!.rawBody)).toBe(true);
    expect(second!.isStandardSignatureValid).toBe(true);
    expect(await logOf(env, eventId)).toEqual([
      '1 automatic 200 - null last',
      '2 manual 500 - null more',
      '3 manual 200 - null last',
    ]);
    expect(await env.deliver({ laterMs: 90 * HOUR_MS })).toEqual(NOTHING_LEFT);
  });

  it('goes to every active endpoint that subscribes to it, and to none that is inactive or of another merchant [D-56]', async ({
    env,
  }) => {
    const one = await env.startEndpoint();
    const two = await env.startEndpoint();
    await env.emit(1_000);
    await env.deliver();
    await deactivate(env, two.configId);
    const isCharge = eq(outboxEvents.type, 'subscription.cycle_charged');
    const [{ id: eventId } = { id: '' }] = await env.db.select().from(outboxEvents).where(isCharge);
    const { merchantId } = env;
    const resend = (configId?: string, of = merchantId) =>
      env.db.transaction((tx) => resendEvent(tx, { merchantId: of, configId, eventId, at: 1 }));
    expect(await resend()).toEqual([one.configId]);
    expect(await resend(two.configId)).toBe('inactive');
    expect(await resend(one.configId, await env.addMerchant())).toBeNull();
    await env.deliver();
    expect([one, two].map(({ receiver }) => answers(receiver))).toEqual([
      ['1: 200', '1: 200'],
      ['1: 200'],
    ]);
  });
});

describe('a recovery', () => {
  it('sends once, in order within streams, all that an endpoint missed while it failed and was inactive, and nothing that arrived [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    await env.deliver();
    receiver.answerWith({ status: 500 });
    await env.emit(2_000);
    await env.emitTo('sub_other');
    await env.deliver();
    await deactivate(env, configId);
    await env.emit(3_000, 4_000);
    expect(await recover(env, configId)).toBe('inactive');
    expect(await missedOf(env)).toEqual([4]);

    receiver.answerWith({ status: 200 });
    await env.changeConfig(configId, { url: receiver.url });
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
    const before = receiver.received.length;
    expect(await missedOf(env)).toEqual([4]);
    expect(await recover(env, configId)).toEqual({ events: 4 });
    expect(await findRecovery(env.db, env.merchantId, 'rec_1')).toMatchObject({
      events: 4,
      pending: 4,
    });
    await env.deliver();
    const sent = receiver.received.slice(before);
    const ofStream = sent.filter(({ event }) => event['streamId'] === env.streamId);
    expect(ofStream.map(({ event }) => event.sequence)).toEqual([2, 3, 4]);
    expect(sent).toHaveLength(4);
    expect(await findRecovery(env.db, env.merchantId, 'rec_1')).toEqual({
      merchantId: env.merchantId,
      id: 'rec_1',
      configId,
      events: 4,
      createdAt: expect.any(Number) as number,
      delivered: 4,
      pending: 0,
      failed: 0,
    });
    expect(await recover(env, configId, undefined, 'rec_2')).toEqual({ events: 0 });
    expect(await missedOf(env)).toEqual([0]);
    expect(await findRecovery(env.db, await env.addMerchant(), 'rec_1')).toBeNull();
    expect(await env.deliver({ laterMs: 90 * HOUR_MS })).toEqual(NOTHING_LEFT);
  });

  it('until an instant leaves the missing events after it, which are still counted [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await deactivate(env, configId);
    await env.emit(1_000);
    await env.changeConfig(configId, { url: receiver.url });
    expect(await recover(env, configId, ['missing'], 'rec_1', -HOUR_MS)).toEqual({ events: 0 });
    expect(await missedOf(env)).toEqual([1]);
    expect(await recover(env, configId, ['missing'], 'rec_2')).toEqual({ events: 1 });
    expect(await missedOf(env)).toEqual([0]);
    await env.deliver();
    expect(answers(receiver)).toEqual(['1: 200']);
  });

  it('of one kind leaves the others [D-56]', async ({ env }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerWith({ status: 500 });
    await env.emit(1_000);
    await env.deliver();
    await deactivate(env, configId);
    await env.emit(2_000);
    receiver.answerWith({ status: 200 });
    await env.changeConfig(configId, { url: receiver.url });
    expect(await recover(env, configId, ['failed'])).toEqual({ events: 0 });
    expect(await recover(env, configId, ['missing'], 'rec_2')).toEqual({ events: 1 });
    await env.deliver();
    expect(await recover(env, configId, ['dropped'], 'rec_3')).toEqual({ events: 1 });
    await env.deliver();
    expect(answers(receiver)).toEqual(['1: 500', '2: 200', '1: 200']);
  });

  it('leaves half of the requests in flight to new events, which do not wait [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await deactivate(env, configId);
    await env.emitTo(...Array.from({ length: 12 }, (_, index) => `sub_${index}`));
    await env.changeConfig(configId, { url: receiver.url });
    expect(await recover(env, configId)).toEqual({ events: 12 });
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let inFlight = 0;
    receiver.onReceive(async ({ event }) => {
      if (event['streamId'] === env.streamId) return;
      inFlight += 1;
      await held;
    });
    const drained = env.deliver();
    await vi.waitFor(() => expect(inFlight).toBe(4), 10_000);
    await env.emit(1_000);
    const dispatched = env.dispatch();
    const isNew = ({ event }: ReceivedWebhook) => event['streamId'] === env.streamId;
    await vi.waitFor(() => expect(receiver.received.filter(isNew)).toHaveLength(1), 10_000);
    expect(inFlight).toBe(4);
    release();
    await Promise.all([drained, dispatched]);
    expect(sequences(receiver)).toHaveLength(13);
    expect(await env.deliver()).toEqual(NOTHING_LEFT);
  });
});

describe('an endpoint that fails', () => {
  it('warns the merchant’s other endpoints at half and at nine tenths of five days, then tells that it was deactivated [D-56]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    const other = await env.startReceiver();
    const types = ['webhook.failing', 'webhook.deactivated'] as const;
    await env.addConfig({ url: other.url, eventTypes: [...types] });
    receiver.answerWith({ status: 500 });
    const nowAt = Date.now();
    const failFor = async (hours: number) => {
      await env.setConfig(configId, {
        failingSince: nowAt - hours * HOUR_MS,
        consecutiveFailures: 1,
        pausedUntil: nowAt - HOUR_MS,
      });
      await env.emitTo(`sub_${hours}`);
      await env.deliver();
      await env.own.deliver({ merchantId: env.merchantId, streamId: configId });
    };
    for (const hours of [59, 61, 62, 107, 109, 121]) await failFor(hours);
    const told = other.received.map(({ event }) => [event.eventType, event.sequence]);
    expect(told).toEqual([
      ['webhook.failing', 1],
      ['webhook.failing', 2],
      ['webhook.deactivated', 3],
    ]);
    const [half, , last] = other.received.map(({ event }) => event);
    expect(half).toMatchObject({
      webhookConfigId: configId,
      webHookUrl: receiver.url,
      failingSince: nowAt - 61 * HOUR_MS,
      deactivatesAt: nowAt + 59 * HOUR_MS,
    });
    expect(last).toMatchObject({ deactivatedReason: 'failing_for_five_days' });
    expect(await env.config(configId)).toMatchObject({ isActive: false });
  });
});
