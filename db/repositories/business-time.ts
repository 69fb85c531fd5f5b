import { and, eq, isNotNull, max } from 'drizzle-orm';
import type { Db } from '../client.ts';
import { outboxEvents } from '../schema/outbox-events.ts';
import { subscriptions } from '../schema/subscriptions.ts';

/**
 * What time it is for something that belongs to `subscriptionId`: where its test clock has brought
 * the subscription, or `nowAt` without one. While the clock advances that is the last thing that
 * happened there, so that what is told next does not lie before it. Rules: D-52, D-60.
 */
export async function businessNow(
  db: Db,
  of: { merchantId: string; subscriptionId: string | null },
  nowAt: number,
): Promise<number> {
  if (of.subscriptionId === null) return nowAt;
  const [row] = await db
    .select({ reachedAt: subscriptions.clockReachedAt, toldAt: max(outboxEvents.occurredAt) })
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
  return Math.max(row.reachedAt ?? 0, row.toldAt ?? 0) || nowAt;
}
