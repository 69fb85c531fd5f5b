import { and, arrayContains, asc, eq, getColumns, gt, isNull, notExists, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import { FAILING_LIMIT_MS, warningsAfter } from '../../../domain/delivery-schedule.ts';
import type { DeactivationReason } from '../../../domain/delivery-schedule.ts';
import { afterAttempt, CLOSED_BREAKER } from '../../../domain/endpoint-breaker.ts';
import type { Breaker, BreakerOutcome, EndpointRef } from '../../../domain/endpoint-breaker.ts';
import { endpointEventBody } from '../../../domain/events.ts';
import type { EndpointEventDraft, EventType } from '../../../domain/events.ts';
import { MAIL_ENDPOINT } from '../../../domain/mails.ts';
import type { Db } from '../../client.ts';
import { merchants } from '../../schema/merchants.ts';
import { webhookConfigs, webhookDeliveries } from '../../schema/webhooks.ts';
import { areFirst, hasValues, isRecord, timestamp } from '../records.ts';
import { appendEvents } from './outbox.ts';

export type WebhookConfig = typeof webhookConfigs.$inferSelect;

/** Time in ms for which `webhook-signature` also contains a signature by the previous secret. */
const PREVIOUS_SIGNER_MS = 24 * 3_600_000;

const isConfig = (ref: EndpointRef) => isRecord(webhookConfigs, ref.merchantId, ref.configId);

const isPendingFor = ({ merchantId, configId }: EndpointRef) =>
  hasValues(webhookDeliveries, { merchantId, configId, state: 'PENDING' });

/** Maximum number of configurations of one merchant, deactivated ones included. */
export const CONFIGS_MAX = 20;

/** Returns why no configuration was stored; null if it was. `at` is real time. */
export async function createWebhookConfig(
  tx: Db,
  config: EndpointRef & {
    url: string;
    sealedSigner: Buffer;
    eventTypes: EventType[];
    at: number;
  },
): Promise<'too_many' | 'second_of_mails' | null> {
  const { configId, at, ...rest } = config;
  const { merchantId, url } = config;
  // The row's lock serialises the creations of one merchant, so parallel requests cannot exceed the limit.
  await tx
    .select({ id: merchants.id })
    .from(merchants)
    .where(eq(merchants.id, merchantId))
    .for('no key update');
  const isOwn = hasValues(webhookConfigs, { merchantId });
  const isCounted = and(isOwn, isNull(webhookConfigs.deletedAt));
  if ((await tx.$count(webhookConfigs, isCounted)) >= CONFIGS_MAX) return 'too_many';
  const isSame = and(isCounted, eq(webhookConfigs.url, url));
  // A payer would get each e-mail twice.
  if (url === MAIL_ENDPOINT && (await tx.$count(webhookConfigs, isSame)) > 0)
    return 'second_of_mails';
  await tx
    .insert(webhookConfigs)
    .values({ ...rest, id: configId, isActive: true, createdAt: at, updatedAt: at });
  return null;
}

/** True if an active endpoint of the merchant takes events of this type. */
export async function isEventTaken(db: Db, merchantId: string, type: EventType): Promise<boolean> {
  const { eventTypes, deletedAt } = webhookConfigs;
  const isActive = hasValues(webhookConfigs, { merchantId, isActive: true });
  const takes = and(isActive, isNull(deletedAt), arrayContains(eventTypes, [type]));
  return (await db.$count(webhookConfigs, takes)) > 0;
}

/** Most missed events that are counted. */
const MISSED_MAX = 100_000;

export interface ListedConfig extends WebhookConfig {
  /** Of the pending deliveries; null without a failed or a pending one. */
  lastError: string | null;
  oldestPendingAt: number | null;
  lastSuccessAt: number | null;
  /** Events that can be recovered: failed, dropped, and those of times when the configuration was inactive. */
  missedEvents: number;
}

/** Returns the merchant's configurations, oldest first, without deleted ones. */
export async function listWebhookConfigs(
  db: Db,
  merchantId: string,
  options: { includeInactive: boolean },
): Promise<ListedConfig[]> {
  const isListed = options.includeInactive ? undefined : eq(webhookConfigs.isActive, true);
  const own = sql`d.merchant_id = webhook_config.merchant_id and d.config_id = webhook_config.id`;
  const pending = sql`from webhook_delivery d where ${own} and d.state = 'PENDING'`;
  const firstMissed = sql.raw(`limit ${MISSED_MAX}`);
  return db
    .select({
      ...getColumns(webhookConfigs),
      lastError: sql<
        string | null
      >`(select coalesce(d.last_error, 'status ' || d.last_http_status) ${pending}
        and d.attempts > 0 order by d.next_attempt_at desc limit 1)`,
      oldestPendingAt: sql<number | null>`(
        select floor(extract(epoch from min(d.inserted_at)) * 1000)::float8 ${pending})`,
      lastSuccessAt: sql<number | null>`(
        select floor(extract(epoch from max(d.settled_at)) * 1000)::float8
        from webhook_delivery d where ${own} and d.state = 'DELIVERED')`,
      missedEvents: sql<number>`(
        (select count(*) from (
          select from webhook_delivery d where ${own} and d.state in ('FAILED', 'DROPPED') ${firstMissed}) d)
        + (select count(*) from (
          select from outbox_event e
          where e.merchant_id = webhook_config.merchant_id and e.inserted_at >= webhook_config.missed_since
            and e.body_deleted_at is null and e.type = any (webhook_config.event_types)
            and e.stream_id <> webhook_config.id
            -- Not "not exists": joined by outdated statistics, 100,000 events would take minutes.
            and (select true from webhook_delivery d where ${own} and d.event_id = e.id) is null
          ${firstMissed}) e))::int`,
    })
    .from(webhookConfigs)
    .where(
      and(eq(webhookConfigs.merchantId, merchantId), isNull(webhookConfigs.deletedAt), isListed),
    )
    .orderBy(asc(webhookConfigs.createdAt), asc(webhookConfigs.id));
}

/** `isStoredReadable`: false if the stored secret cannot be decrypted, and is dropped. */
export interface Resealed {
  readonly sealedSigner: Buffer;
  readonly isStoredReadable: boolean;
}

/**
 * Replaces URL, secret and types, reactivates the configuration, closes its breaker and makes pending deliveries due.
 * `reseal` returns the new encrypted secret; null: unchanged. The old one also signs for 24 h. Returns why nothing
 * changed; null if it did.
 */
export async function updateWebhookConfig(
  db: Db,
  config: EndpointRef & {
    url: string;
    eventTypes: EventType[];
    reseal: (stored: Buffer) => Resealed | null;
    at: number;
  },
): Promise<'unknown' | 'other_kind' | null> {
  return db.transaction(async (tx) => {
    const [stored] = await tx
      .select({ sealedSigner: webhookConfigs.sealedSigner, url: webhookConfigs.url })
      .from(webhookConfigs)
      .where(and(isConfig(config), isNull(webhookConfigs.deletedAt)))
      // The inserts of events lock the row's key.
      .for('no key update');
    if (!stored) return 'unknown';
    if ((stored.url === MAIL_ENDPOINT) !== (config.url === MAIL_ENDPOINT)) return 'other_kind';
    const resealed = config.reseal(stored.sealedSigner);
    const isListed = resealed?.isStoredReadable === true;
    const newSigner = resealed && {
      sealedSigner: resealed.sealedSigner,
      sealedPreviousSigner: isListed ? stored.sealedSigner : null,
      previousSignerUntil: isListed ? config.at + PREVIOUS_SIGNER_MS : null,
    };
    await tx
      .update(webhookConfigs)
      .set({
        ...newSigner,
        url: config.url,
        eventTypes: config.eventTypes,
        isActive: true,
        deactivatedReason: null,
        ...CLOSED_BREAKER,
        warnings: 0,
        updatedAt: config.at,
      })
      .where(isConfig(config));
    await tx
      .update(webhookDeliveries)
      .set({ nextAttemptAt: config.at })
      .where(and(isPendingFor(config), gt(webhookDeliveries.nextAttemptAt, config.at)));
    return null;
  });
}

/** Deletes a configuration. Its next drain drops its pending deliveries. False if the merchant has no such configuration. */
export async function deleteWebhookConfig(
  db: Db,
  config: EndpointRef & { at: number },
): Promise<boolean> {
  const isListed = isNull(webhookConfigs.deletedAt);
  return (await stopDeliveries(db, config, { deletedAt: config.at }, isListed)) !== null;
}

/** Null for an unknown, a deleted and another merchant's configuration. */
export async function findWebhookConfig(db: Db, ref: EndpointRef): Promise<WebhookConfig | null> {
  const [row] = await db
    .select()
    .from(webhookConfigs)
    .where(and(isConfig(ref), isNull(webhookConfigs.deletedAt)));
  return row ?? null;
}

/** Locks a configuration until the transaction ends, and tells whether it is active. Null for an unknown or deleted one. */
export async function lockActiveConfig(tx: Db, ref: EndpointRef): Promise<boolean | null> {
  const [row] = await tx
    .select({ isActive: webhookConfigs.isActive })
    .from(webhookConfigs)
    .where(and(isConfig(ref), isNull(webhookConfigs.deletedAt)))
    .for('no key update');
  return row?.isActive ?? null;
}

/** `updatedAt`: of the configuration at which the attempt was made. */
export type VersionedOutcome = BreakerOutcome & { updatedAt: number };

/**
 * Applies the outcomes of attempts to the stored breaker, except those sent before the configuration's last change, and
 * stores a due warning. Returns the breaker before and after, and the time of that change; null for an unknown
 * configuration.
 */
export async function applyOutcomes(
  db: Db,
  ref: EndpointRef,
  outcomes: readonly VersionedOutcome[],
  nowAt: number,
): Promise<{ updatedAt: number; before: Breaker; breaker: Breaker; isWarned: boolean } | null> {
  return db.transaction(async (tx) => {
    const [stored] = await tx
      .select({
        updatedAt: webhookConfigs.updatedAt,
        consecutiveFailures: webhookConfigs.consecutiveFailures,
        pausedUntil: webhookConfigs.pausedUntil,
        failingSince: webhookConfigs.failingSince,
        warnings: webhookConfigs.warnings,
        url: webhookConfigs.url,
      })
      .from(webhookConfigs)
      .where(isConfig(ref))
      .for('no key update');
    if (!stored) return null;
    const { updatedAt, warnings: warningsBefore, url, ...before } = stored;
    const breaker = outcomes
      .filter((outcome) => outcome.updatedAt === updatedAt)
      .reduce<Breaker>(afterAttempt, before);
    const { failingSince } = breaker;
    const warnings = warningsAfter(failingSince, nowAt);
    const isWarned = failingSince !== null && warnings > warningsBefore;
    await tx
      .update(webhookConfigs)
      .set({ ...breaker, warnings })
      .where(isConfig(ref));
    if (isWarned) {
      const deactivatesAt = failingSince + FAILING_LIMIT_MS;
      const type = 'webhook.failing';
      await appendEndpointEvent(tx, ref, {
        type,
        at: nowAt,
        url,
        failingSinceAt: failingSince,
        deactivatesAt,
      });
    }
    return { updatedAt, before, breaker, isWarned };
  });
}

/**
 * Deactivates a configuration until the merchant updates it. Its next drain drops its pending deliveries. Does nothing
 * and returns false if the configuration was changed after `readUpdatedAt`, the `updatedAt` with which the failed
 * delivery was sent.
 */
export async function deactivateWebhookConfig(
  db: Db,
  config: EndpointRef & { readUpdatedAt: number; reason: DeactivationReason; at: number },
): Promise<boolean> {
  const { reason, at, readUpdatedAt } = config;
  const change = {
    deactivatedReason: reason,
    missedSince: sql`coalesce(missed_since, ${timestamp(at)})`,
  };
  return db.transaction(async (tx) => {
    const stopped = await stopDeliveries(
      tx,
      config,
      change,
      eq(webhookConfigs.updatedAt, readUpdatedAt),
    );
    if (stopped === null) return false;
    const { url, failingSince } = stopped;
    await appendEndpointEvent(tx, config, {
      type: 'webhook.deactivated',
      at,
      url,
      failingSinceAt: failingSince,
      reason,
    });
    return true;
  });
}

function appendEndpointEvent(
  tx: Db,
  { merchantId, configId }: EndpointRef,
  event: Omit<EndpointEventDraft, 'configId'>,
) {
  const draft = { ...event, configId };
  return appendEvents(tx, { merchantId, streamId: configId }, [
    {
      type: event.type,
      occurredAt: event.at,
      body: (envelope) => endpointEventBody(draft, envelope),
    },
  ]);
}

async function stopDeliveries(
  db: Db,
  config: EndpointRef & { at: number },
  change: PgUpdateSetSource<typeof webhookConfigs>,
  condition: SQL,
): Promise<WebhookConfig | null> {
  const [stopped] = await db
    .update(webhookConfigs)
    .set({ ...change, isActive: false, updatedAt: config.at })
    .where(and(isConfig(config), condition))
    .returning();
  return stopped ?? null;
}

/** An endpoint that was down for days may have a million pending deliveries, too many for one statement. */
const DROPPED_AT_ONCE = 5_000;

/** Drops the pending deliveries of a configuration that is inactive or deleted. Leaves out locked ones. */
export async function dropPendingDeliveries(
  db: Db,
  config: EndpointRef & { at: number },
): Promise<void> {
  const active = db
    .select({ id: webhookConfigs.id })
    .from(webhookConfigs)
    .where(and(isConfig(config), eq(webhookConfigs.isActive, true)));
  const condition = and(isPendingFor(config), notExists(active));
  let dropped: number;
  do {
    const rows = await db
      .update(webhookDeliveries)
      .set({ state: 'DROPPED', settledAt: config.at })
      .where(areFirst(db, webhookDeliveries, { condition, limit: DROPPED_AT_ONCE }))
      .returning({ eventId: webhookDeliveries.eventId });
    dropped = rows.length;
  } while (dropped === DROPPED_AT_ONCE);
}
