import { and, eq, isNotNull } from 'drizzle-orm';
import type { Db } from '../client.ts';
import { subscriptions } from '../schema/subscriptions.ts';

/**
 * What time it is for something that belongs to `subscriptionId`: where its test clock has brought
 * the subscription, or `nowAt` without one. Rules: D-52, D-60.
 */
export async function businessNow(
  db: Db,
  of: { merchantId: string; subscriptionId: string | null },
  nowAt: number,
): Promise<number> {
  if (of.subscriptionId === null) return nowAt;
  const [row] = await db
    .select({ reachedAt: subscriptions.clockReachedAt })
    .from(subscriptions)
    .where(
      and(
        eq(subscriptions.merchantId, of.merchantId),
        eq(subscriptions.id, of.subscriptionId),
        isNotNull(subscriptions.testClockId),
      ),
    );
  return row?.reachedAt ?? nowAt;
}
