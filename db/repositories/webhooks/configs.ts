import { and, asc, eq, getColumns, gt, isNull, notExists, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { afterAttempt, CLOSED_BREAKER } from '../../../domain/endpoint-breaker.ts';
import type { Breaker, BreakerOutcome, EndpointRef } from '../../../domain/endpoint-breaker.ts';
import type { EventType } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { merchants } from '../../schema/merchants.ts';
import { webhookConfigs, webhookDeliveries } from '../../schema/webhooks.ts';
import { areFirst, hasValues, isRecord } from '../records.ts';

export type WebhookConfig = typeof webhookConfigs.$inferSelect;

/** Time in ms for which `webhook-signature` also contains a signature by the previous secret. */
const PREVIOUS_SIGNER_MS = 24 * 3_600_000;

const isConfig = (ref: EndpointRef) => isRecord(webhookConfigs, ref.merchantId, ref.configId);

const isPendingFor = ({ merchantId, configId }: EndpointRef) =>
  hasValues(webhookDeliveries, { merchantId, configId, state: 'PENDING' });

/** Maximum number of configurations of one merchant, deactivated ones included. */
export const CONFIGS_MAX = 20;

/** False if the merchant already has {@link CONFIGS_MAX}. `at` is real time. */
export async function createWebhookConfig(
  tx: Db,
  config: EndpointRef & {
    url: string;
    sealedSigner: Buffer;
    eventTypes: EventType[];
    at: number;
  },
): Promise<boolean> {
  const { configId, at, ...rest } = config;
  const { merchantId } = config;
  // The row's lock serialises the creations of one merchant, so parallel requests cannot exceed the limit.
  await tx
    .select({ id: merchants.id })
    .from(merchants)
    .where(eq(merchants.id, merchantId))
    .for('no key update');
  const isOwn = hasValues(webhookConfigs, { merchantId });
  const isCounted = and(isOwn, isNull(webhookConfigs.deletedAt));
  if ((await tx.$count(webhookConfigs, isCounted)) >= CONFIGS_MAX) return false;
  await tx
    .insert(webhookConfigs)
    .values({ ...rest, id: configId, isActive: true, createdAt: at, updatedAt: at });
  return true;
}

/** `lastError`, `oldestUndeliveredAt`: of the pending deliveries; null without a failed or a pending one. */
export interface ListedConfig extends WebhookConfig {
  lastError: string | null;
  oldestUndeliveredAt: number | null;
}

/** Returns the merchant's configurations, oldest first, without deleted ones. */
export async function listWebhookConfigs(
  db: Db,
  merchantId: string,
  options: { includeInactive: boolean },
): Promise<ListedConfig[]> {
  const isListed = options.includeInactive ? undefined : eq(webhookConfigs.isActive, true);
  const pending = sql`from webhook_delivery d
    where d.merchant_id = webhook_config.merchant_id and d.config_id = webhook_config.id and d.state = 'PENDING'`;
  return db
    .select({
      ...getColumns(webhookConfigs),
      lastError: sql<string | null>`(select d.last_error ${pending}
        and d.attempts > 0 order by d.next_attempt_at desc limit 1)`,
      oldestUndeliveredAt: sql<number | null>`(
        select floor(extract(epoch from min(d.inserted_at)) * 1000)::float8 ${pending})`,
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
 * `reseal` returns the new encrypted secret; null: unchanged. The old one also signs for 24 h. False if there is none.
 */
export async function updateWebhookConfig(
  db: Db,
  config: EndpointRef & {
    url: string;
    eventTypes: EventType[];
    reseal: (stored: Buffer) => Resealed | null;
    at: number;
  },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const [stored] = await tx
      .select({ sealedSigner: webhookConfigs.sealedSigner })
      .from(webhookConfigs)
      .where(and(isConfig(config), isNull(webhookConfigs.deletedAt)))
      // The inserts of events lock the row's key.
      .for('no key update');
    if (!stored) return false;
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
        updatedAt: config.at,
      })
      .where(isConfig(config));
    await tx
      .update(webhookDeliveries)
      .set({ nextAttemptAt: config.at })
      .where(and(isPendingFor(config), gt(webhookDeliveries.nextAttemptAt, config.at)));
    return true;
  });
}

/** Deletes a configuration. Its next drain drops its pending deliveries. False if the merchant has no such configuration. */
export function deleteWebhookConfig(
  db: Db,
  config: EndpointRef & { at: number },
): Promise<boolean> {
  return stopDeliveries(db, config, { deletedAt: config.at }, isNull(webhookConfigs.deletedAt));
}

/** `updatedAt`: of the configuration at which the attempt was made. */
export type VersionedOutcome = BreakerOutcome & { updatedAt: number };

/**
 * Applies the outcomes of attempts to the stored breaker, except those sent before the configuration's last change.
 * Returns the breaker before and after, and the time of that change; null for an unknown configuration.
 */
export async function applyOutcomes(
  db: Db,
  ref: EndpointRef,
  outcomes: readonly VersionedOutcome[],
): Promise<{ updatedAt: number; before: Breaker; breaker: Breaker } | null> {
  return db.transaction(async (tx) => {
    const [stored] = await tx
      .select({
        updatedAt: webhookConfigs.updatedAt,
        consecutiveFailures: webhookConfigs.consecutiveFailures,
        pausedUntil: webhookConfigs.pausedUntil,
        failingSince: webhookConfigs.failingSince,
      })
      .from(webhookConfigs)
      .where(isConfig(ref))
      .for('no key update');
    if (!stored) return null;
    const { updatedAt, ...before } = stored;
    const breaker = outcomes
      .filter((outcome) => outcome.updatedAt === updatedAt)
      .reduce<Breaker>(afterAttempt, before);
    await tx.update(webhookConfigs).set(breaker).where(isConfig(ref));
    return { updatedAt, before, breaker };
  });
}

/**
 * Deactivates a configuration until the merchant updates it. Its next drain drops its pending deliveries. Does nothing
 * and returns false if the configuration was changed after `readUpdatedAt`, the `updatedAt` with which the failed
 * delivery was sent.
 */
export function deactivateWebhookConfig(
  db: Db,
  config: EndpointRef & { readUpdatedAt: number; reason: string; at: number },
): Promise<boolean> {
  const isUnchanged = eq(webhookConfigs.updatedAt, config.readUpdatedAt);
  return stopDeliveries(db, config, { deactivatedReason: config.reason }, isUnchanged);
}

async function stopDeliveries(
  db: Db,
  config: EndpointRef & { at: number },
  change: Partial<WebhookConfig>,
  condition: SQL,
): Promise<boolean> {
  const stopped = await db
    .update(webhookConfigs)
    .set({ ...change, isActive: false, updatedAt: config.at })
    .where(and(isConfig(config), condition))
    .returning({ id: webhookConfigs.id });
  return stopped.length > 0;
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
