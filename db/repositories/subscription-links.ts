import { and, eq, sql } from 'drizzle-orm';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { Db } from '../client.ts';
import { subscriptionLinks } from '../schema/subscription-links.ts';
import { subscriptions } from '../schema/subscriptions.ts';

/** A subscription of a link ended unpaid: its use is free again. Nothing without a link. Rule: D-37. */
export async function releaseLinkUse(tx: Db, ref: SubscriptionRef): Promise<void> {
  const linkId = tx
    .select({ id: subscriptions.linkId })
    .from(subscriptions)
    .where(
      and(eq(subscriptions.merchantId, ref.merchantId), eq(subscriptions.id, ref.subscriptionId)),
    );
  await tx
    .update(subscriptionLinks)
    .set({ uses: sql`${subscriptionLinks.uses} - 1` })
    .where(
      and(
        eq(subscriptionLinks.merchantId, ref.merchantId),
        eq(subscriptionLinks.id, sql`(${linkId})`),
      ),
    );
}
