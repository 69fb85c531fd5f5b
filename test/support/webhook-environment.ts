import { randomBytes } from 'node:crypto';
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import { expect, test, vi } from 'vitest';
import { createMailSender } from '../../activities/mails/sender.ts';
import type { MailSettings } from '../../activities/mails/sender.ts';
import { createWebhookDelivery } from '../../activities/webhooks/delivery.ts';
import { createDb } from '../../db/client.ts';
import type { Db } from '../../db/client.ts';
import { appendEvents } from '../../db/repositories/webhooks/outbox.ts';
import type { StreamRef } from '../../domain/events.ts';
import {
  createWebhookConfig,
  deleteWebhookConfig,
  updateWebhookConfig,
} from '../../db/repositories/webhooks/configs.ts';
import { merchants } from '../../db/schema/merchants.ts';
import { webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import type { EventType } from '../../domain/events.ts';
import { newId } from '../../domain/ids.ts';
import { DEFAULT_RETRY_PLAN } from '../../domain/retry-plan.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { LINKS } from './links.ts';
import { createTestDatabase } from './database.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';
import type { WebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';

export type WebhookEnvironment = Awaited<ReturnType<typeof createWebhookEnvironment>>;

/** The number of deliveries that `deliver` leaves, and the time in ms until the next one is due, or null. */
export interface Delivered {
  remaining: number;
  nextDelayMs: number | null;
}

export type Process = ReturnType<typeof startProcess>;

/** Creates the webhook delivery of one process. `woken` lists the endpoints whose queues it woke, `lines` its log. */
function startProcess(
  db: Db,
  sealing: ReturnType<typeof createSealing>,
  wakesEnd = Promise.resolve(),
  mail: MailSettings | null = null,
) {
  const mails = mail && createMailSender({ db, links: LINKS, mail });
  const woken: string[] = [];
  const lines: unknown[] = [];
  const log = (fields: object, message?: string) => void lines.push({ ...fields, message });
  const delivery = createWebhookDelivery({
    db,
    sealing,
    logger: { info: log, warn: log },
    allowLoopback: true,
    mails,
    wakeEndpoint: async ({ configId }) => {
      woken.push(configId);
      await wakesEnd;
    },
  });
  return Object.assign(delivery, { woken, lines, mails });
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const NOTHING_LEFT = { remaining: 0, nextDelayMs: null };

export const sequences = (receiver: WebhookReceiver) =>
  receiver.received.map(({ event }) => event.sequence);
export const answers = (receiver: WebhookReceiver) =>
  receiver.received.map(({ event, answered }) => `${event.sequence}: ${answered}`);
export const streamIds = (count: number) =>
  Array.from({ length: count }, (_, index) => `sub_${index}`);

/** Time limit in ms for the requests in flight of a process. */
const STOP_MS = 60_000;

export const SECRET = 'whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb2Yga2V5';

type Resealing = Parameters<typeof updateWebhookConfig>[1]['reseal'];

/** Empties the database, and creates a test environment with one merchant and one event stream. */
async function createWebhookEnvironment({ url, db }: { url: string; db: Db }) {
  await db.execute(sql`
    with deliveries as (delete from webhook_delivery), attempts as (delete from webhook_attempt),
      recoveries as (delete from webhook_recovery), events as (delete from outbox_event),
      streams as (delete from event_stream), entries as (delete from feed_entry),
      feeds as (delete from event_feed), configs as (delete from webhook_config)
    delete from merchant`);
  const sealing = createSealing([Buffer.alloc(32, 1)]);
  const startedAt = Date.now();
  const merchantId = newId('mer', startedAt, randomBytes);
  const streamId = newId('sub', startedAt, randomBytes);
  const own = startProcess(db, sealing);
  const started = [own];
  const receivers: WebhookReceiver[] = [];
  const emitTo = (of: string, amounts: readonly number[]) =>
    db.transaction((tx) =>
      appendEvents(
        tx,
        { merchantId, streamId: of },
        amounts.map((amount) => ({
          type: 'subscription.cycle_charged',
          occurredAt: startedAt,
          body: (envelope) => ({ ...envelope, amount, streamId: of, note: 'Zoë – 100 %' }),
        })),
      ),
    );
  const insertMerchant = async (id: string): Promise<void> => {
    const settings = { retryPlan: DEFAULT_RETRY_PLAN };
    const row = { id, name: 'Test shop', mode: 'test' as const, settings, createdAt: startedAt };
    await db.insert(merchants).values(row);
  };
  await insertMerchant(merchantId);

  const addConfig = async ({
    url,
    secret = SECRET,
    eventTypes = ['subscription.cycle_charged'],
    merchantId: of = merchantId,
  }: {
    url: string;
    secret?: string;
    eventTypes?: EventType[];
    merchantId?: string;
  }): Promise<string> => {
    const configId = newId('whc', Date.now(), randomBytes);
    const sealedSigner = sealing.seal(secret, configId);
    await createWebhookConfig(db, {
      merchantId: of,
      configId,
      url,
      sealedSigner,
      eventTypes,
      at: startedAt,
    });
    return configId;
  };
  /** Starts an endpoint that knows these secrets, or {@link SECRET}. */
  const startReceiver = async (...secrets: string[]) => {
    const receiver = await startWebhookReceiver({
      secrets: secrets.length > 0 ? secrets : [SECRET],
    });
    receivers.push(receiver);
    return receiver;
  };

  return {
    db,
    databaseUrl: url,
    sealing,
    merchantId,
    streamId,
    activities: own.activities,
    /** The process of `activities`, `deliver` and `dispatch`. */
    own,
    /** The endpoints whose queues were woken, in order. */
    woken: own.woken,
    /** Creates the webhook delivery of another process, whose wake-ups of queues end when `wakesEnd` resolves. */
    startProcess(itsDb: Db = db, wakesEnd?: Promise<void>, mail?: MailSettings): Process {
      const other = startProcess(itsDb, sealing, wakesEnd, mail);
      started.push(other);
      return other;
    },
    addConfig,
    /** Commits one event per amount, in one transaction. */
    emit: (...amounts: number[]) => emitTo(streamId, amounts),
    /** Commits one event of this type to a stream of any merchant. */
    emitEvent: (stream: StreamRef, type: EventType) =>
      db.transaction((tx) =>
        appendEvents(tx, stream, [
          { type, occurredAt: startedAt, body: (envelope) => ({ ...envelope }) },
        ]),
      ),
    /** Adds a further merchant and returns its id. */
    async addMerchant(): Promise<string> {
      const id = newId('mer', startedAt, randomBytes);
      await insertMerchant(id);
      return id;
    },
    /** Commits one event to each stream. */
    async emitTo(...streamIds: string[]) {
      for (const id of streamIds) await emitTo(id, [1_000]);
    },
    /** Drains the endpoint queues of `merchantId` in parallel, `laterMs` after the start of this test environment. */
    async deliver({ laterMs = 0, process = own }: { laterMs?: number; process?: Process } = {}) {
      const configs = await db.select({ id: webhookConfigs.id }).from(webhookConfigs);
      const drains = await Promise.allSettled(
        configs.map(({ id: configId }) =>
          process.activities.drainEndpoint({ merchantId, configId, nowAt: startedAt + laterMs }),
        ),
      );
      const delivered: Delivered = { remaining: 0, nextDelayMs: null };
      for (const drain of drains) {
        if (drain.status === 'rejected') throw drain.reason;
        const { remaining, nextDelayMs } = drain.value;
        delivered.remaining += remaining;
        if (nextDelayMs !== null) {
          delivered.nextDelayMs = Math.min(nextDelayMs, delivered.nextDelayMs ?? nextDelayMs);
        }
      }
      return delivered;
    },
    /** Delivers the stream as a process does that has committed its events, and waits until it is done. */
    dispatch: (process: Process = own) => process.deliver({ merchantId, streamId }),
    /** Changes a configuration as `PUT /webhook` does. Without `reseal` the secret stays. */
    changeConfig: (configId: string, change: { url: string; reseal?: Resealing; at?: number }) =>
      updateWebhookConfig(db, {
        merchantId,
        configId,
        eventTypes: ['subscription.cycle_charged'],
        reseal: () => null,
        at: Date.now(),
        ...change,
      }),
    deleteConfig: (configId: string) =>
      deleteWebhookConfig(db, { merchantId, configId, at: Date.now() }),
    /** Changes the row of a configuration, as other processes or earlier times have left it. */
    setConfig: async (configId: string, values: Partial<typeof webhookConfigs.$inferInsert>) => {
      await db.update(webhookConfigs).set(values).where(eq(webhookConfigs.id, configId));
    },
    /** Sequence, state and number of attempts of each delivery to a configuration, by sequence, then by age. */
    async progress(configId: string) {
      const rows = await db
        .select()
        .from(webhookDeliveries)
        .where(
          and(
            eq(webhookDeliveries.merchantId, merchantId),
            eq(webhookDeliveries.configId, configId),
          ),
        )
        .orderBy(asc(webhookDeliveries.sequence), asc(webhookDeliveries.insertedAt));
      return rows.map((row) => `${row.sequence} ${row.state} ${row.attempts}`);
    },
    async config(configId: string) {
      const [row] = await db.select().from(webhookConfigs).where(eq(webhookConfigs.id, configId));
      if (!row) throw new Error(`no configuration ${configId}`);
      return row;
    },
    startReceiver,
    /** Starts an endpoint, and adds a configuration with its URL. */
    startEndpoint: async () => {
      const receiver = await startReceiver();
      return { receiver, configId: await addConfig({ url: receiver.url }) };
    },
    async close() {
      await Promise.all(receivers.map((receiver) => receiver.close()));
      if (receivers.length > 0) await expectNoClaim(db);
      await Promise.all(started.map((process) => process.stop(STOP_MS)));
      for (const { mails } of started) mails?.close();
    },
  };
}

/**
 * Waits until no pending delivery is claimed. A pending delivery may not stay claimed after its endpoint has closed.
 * The claim of a dropped delivery has no meaning.
 */
async function expectNoClaim(db: Db): Promise<void> {
  const isClaimed = and(
    eq(webhookDeliveries.state, 'PENDING'),
    gt(webhookDeliveries.claimedUntil, sql`now()`),
  );
  await vi.waitFor(async () => {
    expect(await db.select().from(webhookDeliveries).where(isClaimed)).toEqual([]);
  }, STOP_MS);
}

/** A `test` function with a test environment for each test. The tests of a file share a database. */
export const onWebhookQueues = test
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('database', { scope: 'file' }, async ({}, { onCleanup }) => {
    const database = await createTestDatabase();
    const handle = createDb({ url: database.url, poolSize: 8, applicationName: 'test' });
    onCleanup(async () => {
      await handle.close();
      await database.drop();
    });
    return { url: database.url, db: handle.db };
  })
  .extend('env', async ({ database }, { onCleanup }) => {
    const env = await createWebhookEnvironment(database);
    onCleanup(() => env.close());
    return env;
  });
