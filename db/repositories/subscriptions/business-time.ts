import { and, eq, isNotNull, max } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { outboxEvents } from '../../schema/webhooks.ts';
import { subscriptions } from '../../schema/subscriptions.ts';

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
  const [row] = await db
    .select({ reachedAt: subscriptions.clockReachedAt, lastEventAt: max(outboxEvents.occurredAt) })
    .from(subscriptions)
    .leftJoin(
      outboxEvents,
      and(
        eq(outboxEvents.merchantId, subscriptions.merchantId),
        eq(outboxEvents.streamId, subscriptions.id),
      ),
    )
    .where(
      and(
        eq(subscriptions.merchantId, of.merchantId),
        eq(subscriptions.id, of.subscriptionId),
        isNotNull(subscriptions.testClockId),
      ),
    )
    .groupBy(subscriptions.merchantId, subscriptions.id);
  if (!row) return nowAt;
  return Math.max(row.reachedAt ?? 0, row.lastEventAt ?? 0) || nowAt;
}
