import { and, isNotNull, max } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { outboxEvents } from '../../schema/webhooks.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';

/**
 * Returns the business time of a new record: `nowAt`, or on a test clock the time that the subscription has reached,
 * never before its last event, so that events stay in order.
 */
export async function businessNow(
  db: Db,
  of: { merchantId: string; subscriptionId: string | null },
  nowAt: number,
): Promise<number> {
  if (of.subscriptionId === null) return nowAt;
  const isOf = isRecord(subscriptions, of.merchantId, of.subscriptionId);
  const [row] = await db
    .select({ reachedAt: subscriptions.clockReachedAt, lastEventAt: max(outboxEvents.occurredAt) })
    .from(subscriptions)
    .leftJoin(
      outboxEvents,
      hasValues(outboxEvents, { merchantId: subscriptions.merchantId, streamId: subscriptions.id }),
    )
    .where(and(isOf, isNotNull(subscriptions.testClockId)))
    .groupBy(subscriptions.merchantId, subscriptions.id);
  if (!row) return nowAt;
  return Math.max(row.reachedAt ?? 0, row.lastEventAt ?? 0) || nowAt;
}
