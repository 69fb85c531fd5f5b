import { and, eq, isNotNull, max } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { outboxEvents } from '../../schema/outbox-events.ts';
import { subscriptions } from '../../schema/subscriptions.ts';

/**
 * The business time of a record of `subscriptionId`: the time that the subscription reached on its test
 * clock, or `nowAt` without a clock. While the clock advances, it is at least the time of the
 * subscription's last event, so a new event is never earlier than that one. Rules: D-52, D-60.
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
