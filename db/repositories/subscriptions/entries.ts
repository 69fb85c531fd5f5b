import { and, asc, gt, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { Entry } from '../../../domain/subscription/entries.ts';
import type { SubscriptionRef, SubscriptionStatus } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { subscriptionEntries, subscriptions } from '../../schema/subscriptions.ts';
import { hasValues } from '../records.ts';

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
  // A row is only written by `writeChange`.
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
