import { and, eq, inArray, lte, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { paymentIntents } from '../../schema/payment-intents.ts';
import { subscriptionLinks } from '../../schema/subscription-links.ts';
import { isRecord } from '../is-record.ts';

/** Identifies a link. Rule: D-21. */
export interface LinkRef {
  merchantId: string;
  linkId: string;
}

/**
 * The number of uses that a link's unpaid payments hold although their pages have expired at `nowAt` (real
 * time). A payer may take these uses. Rule: D-37.
 */
export function countExpiredUses(db: Db, link: LinkRef, nowAt: number): Promise<number> {
  return db.$count(paymentIntents, isExpired(link, nowAt));
}

/**
 * Cancels the link's unpaid payments whose pages have expired at `nowAt` (real time), and gives their uses back
 * to the link. Returns the number of these uses. The caller must hold the lock of the link's row. A cancelled
 * payment takes no card any more, so its use cannot be sold twice. Rule: D-37.
 */
export async function releaseExpiredUses(tx: Db, link: LinkRef, nowAt: number): Promise<number> {
  const expired = tx
    .select({ id: paymentIntents.id })
    .from(paymentIntents)
    .where(isExpired(link, nowAt))
    // A locked payment is being paid or cancelled. To wait for it could be a deadlock with its cancellation.
    .for('update', { skipLocked: true });
  const released = await tx
    .update(paymentIntents)
    .set({ status: 'CANCELLED', updatedAt: sql`now()` })
    .where(and(eq(paymentIntents.merchantId, link.merchantId), inArray(paymentIntents.id, expired)))
    .returning({ id: paymentIntents.id });
  if (released.length > 0) await returnUses(tx, link, released.length);
  return released.length;
}

/** Returns the use of a payment that was cancelled unpaid. The caller must call this once for a payment. */
export async function releasePaymentUse(tx: Db, link: LinkRef): Promise<void> {
  await returnUses(tx, link, 1);
}

async function returnUses(tx: Db, { merchantId, linkId }: LinkRef, count: number): Promise<void> {
  await tx
    .update(subscriptionLinks)
    .set({ uses: sql`${subscriptionLinks.uses} - ${count}` })
    .where(isRecord(subscriptionLinks, merchantId, linkId));
}

/** The same rule as `intentStatusAt`. */
function isExpired({ merchantId, linkId }: LinkRef, nowAt: number) {
  return and(
    eq(paymentIntents.merchantId, merchantId),
    eq(paymentIntents.linkId, linkId),
    inArray(paymentIntents.status, ['CREATED', 'FAILED']),
    lte(paymentIntents.checkoutExpiresAt, nowAt),
  );
}
