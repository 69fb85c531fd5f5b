import { randomBytes } from 'node:crypto';
import { and, asc, eq } from 'drizzle-orm';
import { afterEach, beforeEach, expect } from 'vitest';
import { createWebhookActivities } from '../../activities/webhooks.ts';
import type { DeliverPendingResult, WebhookActivities } from '../../activities/webhooks.ts';
import { createDb } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { appendEvents } from '../../db/repositories/outbox.ts';
import { createWebhookConfig } from '../../db/repositories/webhook-configs.ts';
import { deliveryLeases } from '../../db/schema/delivery-leases.ts';
import { merchants } from '../../db/schema/merchants.ts';
import { webhookConfigs } from '../../db/schema/webhook-configs.ts';
import { webhookDeliveries } from '../../db/schema/webhook-deliveries.ts';
import type { EventType } from '../../domain/events.ts';
import { newId } from '../../domain/ids.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { createTestDatabase } from './database.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** One merchant with one stream of events on a database of its own. */
export interface WebhookWorld {
  db: Db;
  databaseUrl: string;
  sealing: ReturnType<typeof createSealing>;
  merchantId: string;
  streamId: string;
  activities: WebhookActivities;
  /** Streams that were asked to be woken, in order. */
  woken: string[];
  addConfig(config: { url: string; secret?: string; eventTypes?: EventType[] }): Promise<string>;
  /** Commits one event per amount, in one transaction. */
  emit(...amounts: number[]): Promise<void>;
  /** `laterMs`: how far the calling workflow's clock is ahead of the start of this world. */
  deliver(options?: { laterMs?: number; handOver?: boolean }): Promise<DeliverPendingResult>;
  /** State and attempts of each delivery to a configuration, in sequence order. */
  progress(configId: string): Promise<string[]>;
  config(configId: string): Promise<typeof webhookConfigs.$inferSelect>;
  close(): Promise<void>;
}

export const SECRET = 'whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb2Yga2V5';

export async function createWebhookWorld(): Promise<WebhookWorld> {
  const database = await createTestDatabase();
  const handle = createDb({ url: database.url, poolSize: 8, applicationName: 'test' });
  const { db } = handle;
  const sealing = createSealing(Buffer.alloc(32, 1));
  const startedAt = Date.now();
  const merchantId = newId('mer', startedAt, randomBytes);
  const streamId = newId('sub', startedAt, randomBytes);
  const woken: string[] = [];
  const activities = createWebhookActivities({
    db,
    sealing,
    allowLoopback: true,
    wakeStream: async (stream) => {
      woken.push(stream.streamId);
    },
  });
  await db.insert(merchants).values({
    id: merchantId,
    name: 'Test shop',
    mode: 'test',
    settings: { retryPlan: DEFAULT_RETRY_PLAN },
    createdAt: startedAt,
  });

  return {
    db,
    databaseUrl: database.url,
    sealing,
    merchantId,
    streamId,
    activities,
    woken,
    async addConfig({ url, secret = SECRET, eventTypes = ['subscription.cycle_charged'] }) {
      const configId = newId('whc', Date.now(), randomBytes);
      const sealedSigner = sealing.seal(secret, configId);
      await createWebhookConfig(db, {
        merchantId,
        configId,
        url,
        sealedSigner,
        eventTypes,
        at: startedAt,
      });
      return configId;
    },
    async emit(...amounts) {
      await db.transaction((tx) =>
        appendEvents(
          tx,
          { merchantId, streamId },
          amounts.map((amount) => ({
            type: 'subscription.cycle_charged',
            occurredAt: startedAt,
            body: (envelope) => ({ ...envelope, amount, note: 'Zoë – 100 %' }),
          })),
        ),
      );
    },
    deliver: ({ laterMs = 0, handOver = false } = {}) =>
      activities.deliverPending({ merchantId, streamId, nowAt: startedAt + laterMs, handOver }),
    async progress(configId) {
      const rows = await db
        .select()
        .from(webhookDeliveries)
        .where(
          and(
            eq(webhookDeliveries.merchantId, merchantId),
            eq(webhookDeliveries.configId, configId),
          ),
        )
        .orderBy(asc(webhookDeliveries.sequence));
      return rows.map((row) => `${row.sequence} ${row.state} ${row.attempts}`);
    },
    async config(configId) {
      const [row] = await db.select().from(webhookConfigs).where(eq(webhookConfigs.id, configId));
      if (!row) throw new Error(`no configuration ${configId}`);
      return row;
    },
    async close() {
      await handle.close();
      await database.drop();
    },
  };
}

/** A world of its own for each test of a file, and receivers that end with it; to be called at its top. */
export function webhookWorlds() {
  let world: WebhookWorld;
  let receivers: WebhookReceiver[];
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
  return {
    world: () => world,
    startReceiver: async (...secrets: string[]): Promise<WebhookReceiver> => {
      const receiver = await startWebhookReceiver({
        secrets: secrets.length > 0 ? secrets : [SECRET],
      });
      receivers.push(receiver);
      return receiver;
    },
  };
}
