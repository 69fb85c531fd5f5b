import { asc, eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { stalledEndpoints } from '../../db/repositories/webhooks/deliveries.ts';
import { appendEvents } from '../../db/repositories/webhooks/outbox.ts';
import type { EventToStore } from '../../db/repositories/webhooks/outbox.ts';
import {
  deactivateWebhookConfig,
  deleteWebhookConfig,
  dropPendingDeliveries,
  listWebhookConfigs,
} from '../../db/repositories/webhooks/configs.ts';
import { outboxEvents, webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { onWebhookQueues as it } from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';

const URL = 'https://example.com/hooks';
const OCCURRED_AT = Date.UTC(2027, 0, 31, 12, 0, 0, 123);

const event = (type: EventToStore['type'], content: object = {}): EventToStore => ({
  type,
  occurredAt: OCCURRED_AT,
  body: (envelope) => ({ ...envelope, eventType: type, ...content }),
});
const append = (env: WebhookEnvironment, streamId: string, ...events: EventToStore[]) =>
  env.db.transaction((tx) => appendEvents(tx, { merchantId: env.merchantId, streamId }, events));
const stored = (env: WebhookEnvironment) =>
  env.db.select().from(outboxEvents).orderBy(asc(outboxEvents.sequence));
const deliveries = async (env: WebhookEnvironment) => {
  const rows = await env.db
    .select({
      configId: webhookDeliveries.configId,
      type: outboxEvents.type,
      state: webhookDeliveries.state,
    })
    .from(webhookDeliveries)
    .innerJoin(outboxEvents, eq(outboxEvents.id, webhookDeliveries.eventId))
    .orderBy(asc(webhookDeliveries.sequence));
  return rows.map((row) => `${row.configId} ${row.type} ${row.state}`);
};

describe('the outbox', () => {
  it('numbers the events of a stream from 1 over all types and stores each body as it is sent [D-52]', async ({
    env,
  }) => {
    await append(env, 'sub_1', event('intent.created', { note: 'Zoë "\u0000\n' }));
    await append(env, 'sub_1', event('intent.success'), event('subscription.cycle_charged'));
    await append(env, 'sub_2', event('intent.created'));

    const rows = await stored(env);
    expect(rows.map((row) => `${row.streamId} ${row.sequence} ${row.type}`).toSorted()).toEqual([
      'sub_1 1 intent.created',
      'sub_1 2 intent.success',
      'sub_1 3 subscription.cycle_charged',
      'sub_2 1 intent.created',
    ]);
    const first = rows.find((row) => row.streamId === 'sub_1' && row.sequence === 1);
    expect(first?.id).toMatch(/^evt_[0-9A-Za-z]{22}$/);
    expect(first?.body).toBe(
      `{"eventId":"${first?.id}","sequence":1,"eventType":"intent.created","note":"Zoë \\"\\u0000\\n"}`,
    );
    expect(first?.occurredAt).toBe(OCCURRED_AT);
  });

  it('numbers a stream’s events without gaps and keeps each transaction’s events together when 20 transactions write at once [D-52]', async ({
    env,
  }) => {
    await Promise.all(
      Array.from({ length: 20 }, () =>
        append(env, 'sub_1', event('intent.created'), event('intent.success')),
      ),
    );
    const rows = await stored(env);
    expect(rows.map((row) => row.sequence)).toEqual(
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    expect(rows.map((row) => row.type)).toEqual(
      Array.from({ length: 20 }, () => ['intent.created', 'intent.success']).flat(),
    );
  });

  it('creates a delivery for each active configuration with the event’s type [D-50]', async ({
    env,
  }) => {
    const both = await env.addConfig({
      url: URL,
      eventTypes: ['intent.created', 'intent.failed'],
    });
    const one = await env.addConfig({ url: URL, eventTypes: ['intent.failed'] });
    const off = await env.addConfig({ url: URL, eventTypes: ['intent.failed'] });
    await deactivateWebhookConfig(env.db, {
      merchantId: env.merchantId,
      configId: off,
      readUpdatedAt: (await env.config(off)).updatedAt,
      reason: 'endpoint_gone',
      at: OCCURRED_AT,
    });
    await append(
      env,
      'sub_1',
      event('intent.created'),
      event('intent.failed'),
      event('subscription.ended'),
    );
    await env.db.transaction((tx) =>
      appendEvents(tx, { merchantId: 'mer_of_another', streamId: 'sub_1' }, [
        event('intent.failed'),
      ]),
    );
    expect((await deliveries(env)).toSorted()).toEqual(
      [
        `${both} intent.created PENDING`,
        `${both} intent.failed PENDING`,
        `${one} intent.failed PENDING`,
      ].toSorted(),
    );
  });
});

describe('the sweep for overdue deliveries', () => {
  const stalledAt = (env: WebhookEnvironment, at: number) => stalledEndpoints(env.db, at, 10);
  const endpoint = (env: WebhookEnvironment, configId: string) => ({
    merchantId: env.merchantId,
    configId,
  });
  const first = eq(webhookDeliveries.sequence, 1);

  it('finds an endpoint once when a delivery is more than 30 s late [D-54]', async ({ env }) => {
    const configIds = [await env.addConfig({ url: URL }), await env.addConfig({ url: URL })];
    const before = Date.now();
    await env.emit(1_000, 2_000);
    expect(await stalledAt(env, before + 20_000)).toEqual([]);
    const late = Date.now() + 31_000;
    expect(new Set(await stalledAt(env, late))).toEqual(
      new Set(configIds.map((id) => endpoint(env, id))),
    );
    expect(await stalledAt(env, late)).toHaveLength(2);
  });

  it('skips a delivery that is claimed, settled, or held back by another delivery [D-54]', async ({
    env,
  }) => {
    const configId = await env.addConfig({ url: URL });
    const own = [endpoint(env, configId)];
    await env.emit(1_000, 2_000);
    const at = Date.now();
    const claim = (claimedUntil: number | null) =>
      env.db.update(webhookDeliveries).set({ claimedUntil }).where(first);
    await claim(at + 40_000);
    expect(await stalledAt(env, at + 31_000)).toEqual([]);
    await claim(at - 1_000);
    expect(await stalledAt(env, at + 31_000)).toEqual(own);
    await claim(null);

    const nextAttemptAt = at + 60_000;
    await env.db.update(webhookDeliveries).set({ attempts: 2, nextAttemptAt }).where(first);
    expect(await stalledAt(env, at + 31_000)).toEqual([]);
    expect(await stalledAt(env, at + 91_000)).toEqual(own);
    // After three failures the first event no longer holds back the second event, which is late.
    await env.db.update(webhookDeliveries).set({ attempts: 3 }).where(first);
    expect(await stalledAt(env, at + 31_000)).toEqual(own);

    await env.db.update(webhookDeliveries).set({ state: 'DELIVERED' });
    expect(await stalledAt(env, at + 90_000)).toEqual([]);
  });

  it('skips an endpoint until 30 s after its breaker’s pause [D-54]', async ({ env }) => {
    const configId = await env.addConfig({ url: URL });
    await env.emit(1_000);
    const at = Date.now();
    const pausedUntil = at + 60_000;
    await env.db.update(webhookConfigs).set({ consecutiveFailures: 9, pausedUntil });
    expect(await stalledAt(env, at + 31_000)).toEqual([]);
    expect(await stalledAt(env, at + 89_000)).toEqual([]);
    expect(await stalledAt(env, at + 91_000)).toEqual([endpoint(env, configId)]);
  });

  it('skips an endpoint when its queue has claimed another late delivery [D-54]', async ({
    env,
  }) => {
    const configId = await env.addConfig({ url: URL });
    await env.emitTo('sub_1', 'sub_2');
    const isFirstStream = eq(webhookDeliveries.streamId, 'sub_1');
    const at = Date.now();
    const claimedUntil = at + 40_000;
    await env.db.update(webhookDeliveries).set({ claimedUntil }).where(isFirstStream);
    expect(await stalledAt(env, at + 31_000)).toEqual([]);
    await env.db.update(webhookDeliveries).set({ claimedUntil: null });
    expect(await stalledAt(env, at + 31_000)).toEqual([endpoint(env, configId)]);
  });
});

describe('webhook configurations', () => {
  const ref = (env: WebhookEnvironment, configId: string) => ({
    merchantId: env.merchantId,
    configId,
  });

  it('are listed oldest first, inactive configurations only on request, deleted configurations never [IF-4.14]', async ({
    env,
  }) => {
    const ids = [
      await env.addConfig({ url: `${URL}/1` }),
      await env.addConfig({ url: `${URL}/2` }),
      await env.addConfig({ url: `${URL}/3` }),
    ] as const;
    await deactivateWebhookConfig(env.db, {
      ...ref(env, ids[1]),
      readUpdatedAt: (await env.config(ids[1])).updatedAt,
      reason: 'endpoint_gone',
      at: OCCURRED_AT,
    });
    expect(await deleteWebhookConfig(env.db, { ...ref(env, ids[2]), at: OCCURRED_AT })).toBe(true);
    expect(await deleteWebhookConfig(env.db, { ...ref(env, ids[2]), at: OCCURRED_AT })).toBe(false);

    const listed = async (includeInactive: boolean) =>
      (await listWebhookConfigs(env.db, env.merchantId, { includeInactive })).map(
        (config) => `${config.id} ${config.isActive}`,
      );
    expect(await listed(false)).toEqual([`${ids[0]} true`]);
    // The order follows the time of creation, not the id.
    const createdAt = Date.UTC(2020, 0, 1);
    await env.db.update(webhookConfigs).set({ createdAt }).where(eq(webhookConfigs.id, ids[1]));
    expect(await listed(true)).toEqual([`${ids[1]} false`, `${ids[0]} true`]);
  });

  it('keep their pending deliveries while they are active [D-54, D-55]', async ({ env }) => {
    const configId = await env.addConfig({ url: URL, eventTypes: ['intent.failed'] });
    await append(env, 'sub_1', event('intent.failed'));
    // A process that read the configuration as inactive, before the merchant updated it, drops late.
    await dropPendingDeliveries(env.db, { ...ref(env, configId), at: OCCURRED_AT });
    expect(await deliveries(env)).toEqual([`${configId} intent.failed PENDING`]);

    await env.db.update(webhookConfigs).set({ isActive: false });
    await dropPendingDeliveries(env.db, { ...ref(env, configId), at: OCCURRED_AT });
    expect(await deliveries(env)).toEqual([`${configId} intent.failed DROPPED`]);
  });

  it('drop thousands of pending deliveries in batches when they are inactive, except locked ones [D-54]', async ({
    env,
  }) => {
    const configId = await env.addConfig({ url: URL, eventTypes: ['intent.failed'] });
    await append(env, 'sub_1', event('intent.failed'));
    await env.db.execute(sql`
      insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
      select merchant_id, 'evt_' || n, stream_id, n, type, body, occurred_at
      from outbox_event, generate_series(2, 10001) n`);
    await env.db.execute(sql`
      insert into webhook_delivery (merchant_id, event_id, config_id, stream_id, sequence, state, next_attempt_at)
      select d.merchant_id, 'evt_' || n, d.config_id, d.stream_id, n, d.state, d.next_attempt_at
      from webhook_delivery d, generate_series(2, 10001) n`);
    await env.db.update(webhookConfigs).set({ isActive: false });
    const states = () =>
      env.db.execute(sql`select state, count(*)::int from webhook_delivery group by 1 order by 1`);
    await env.db.transaction(async (tx) => {
      await tx.execute(sql`select from webhook_delivery where event_id = 'evt_7' for update`);
      await dropPendingDeliveries(env.db, { ...ref(env, configId), at: OCCURRED_AT });
    });
    expect([...(await states())]).toEqual([
      { state: 'DROPPED', count: 10_000 },
      { state: 'PENDING', count: 1 },
    ]);
    await dropPendingDeliveries(env.db, { ...ref(env, configId), at: OCCURRED_AT });
    expect([...(await states())]).toEqual([{ state: 'DROPPED', count: 10_001 }]);
  });
});
