import { and, asc, gt, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { Entry } from '../../../domain/subscription/entries.ts';
import type {
  SubscriptionRef,
  SubscriptionState,
  SubscriptionStatus,
} from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { subscriptionEntries, subscriptions } from '../../schema/subscriptions.ts';
import { hasValues } from '../records.ts';

/** The ledger of a subscription: rows are inserted with their transition, and never changed or deleted. */

/** Returns the row of the entry that made this version; null if the version only opened an attempt. */
export function entryRow({
  merchantId,
  subscriptionId,
  version,
  status,
  latest,
}: SubscriptionState) {
  if (latest.version !== version) return null;
  const { version: _, at, actor, kind, ...facts } = latest;
  return { merchantId, subscriptionId, version, at, status, actor, kind, facts };
}

export type EntryRow = ReturnType<typeof entryRow>;

/** Inserts the entry of a new subscription, inside the caller's transaction. */
export async function insertFirstEntry(tx: Db, state: SubscriptionState): Promise<void> {
  const row = entryRow(state);
  if (row) await tx.insert(subscriptionEntries).values(row);
}

/** An entry, and the status of the subscription after it. */
export type RecordedEntry = Entry & { statusAfter: SubscriptionStatus };

/** Returns entries after `afterVersion`, oldest first. */
export async function listEntries(
  db: Db,
  { merchantId, subscriptionId }: SubscriptionRef,
  { afterVersion, limit }: { afterVersion: number; limit: number },
): Promise<RecordedEntry[]> {
  const { version, at, status: statusAfter, actor, kind, facts } = subscriptionEntries;
  const isOf = hasValues(subscriptionEntries, { merchantId, subscriptionId });
  const rows = await db
    .select({ version, at, statusAfter, actor, kind, facts })
    .from(subscriptionEntries)
    .where(and(isOf, gt(version, afterVersion)))
    .orderBy(asc(version))
    .limit(limit);
  // A row is only written by `entryRow`.
  return rows.map(({ facts: more, ...row }) => ({ ...row, ...more }) as RecordedEntry);
}

/** SQL for the entry of row `e` as JSON. */
export const ENTRY_JSON = `jsonb_build_object('version', e.version, 'at', (extract(epoch from e.at) * 1000)::bigint,
  'actor', e.actor, 'kind', e.kind) || e.facts`;

/** SQL expression: the latest `count` entries of the selected subscription, oldest first. */
export function latestEntries(count: number): SQL<Entry[]> {
  return sql<Entry[]>`(
    select coalesce(json_agg(${sql.raw(ENTRY_JSON)} order by e.version), '[]')
    from (
      select * from ${subscriptionEntries} e
      where e.merchant_id = ${subscriptions.merchantId} and e.subscription_id = ${subscriptions.id}
      order by e.version desc limit ${count}
    ) e
  )`;
}
