import { and, eq, inArray, lte, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { subscriptionLinks } from '../../schema/subscriptions.ts';
import { hasValues, isRecord } from '../records.ts';

export interface LinkRef {
  merchantId: string;
  linkId: string;
}

/** Returns the uses of unpaid payments expired at `nowAt` (real time), which others may take. */
export function countExpiredUses(db: Db, link: LinkRef, nowAt: number): Promise<number> {
  return db.$count(paymentIntents, isExpired(link, nowAt));
}

/**
 * Cancels the link's unpaid payments that expired at `nowAt` (real time) and releases their uses. Returns their
 * number. The caller must hold the link's lock. A cancelled payment accepts no card.
 */
export async function releaseExpiredUses(tx: Db, link: LinkRef, nowAt: number): Promise<number> {
  const expired = tx
    .select({ id: paymentIntents.id })
    .from(paymentIntents)
    .where(isExpired(link, nowAt))
    // A locked payment is being paid or cancelled. Waiting for the lock could deadlock with the cancellation.
    .for('update', { skipLocked: true });
  const released = await tx
    .update(paymentIntents)
    .set({ status: 'CANCELLED', updatedAt: sql`now()` })
    .where(and(eq(paymentIntents.merchantId, link.merchantId), inArray(paymentIntents.id, expired)))
    .returning({ id: paymentIntents.id });
  if (released.length > 0) await returnUses(tx, link, released.length);
  return released.length;
}

/** Releases the use of a payment that was cancelled unpaid. A repeat releases another one. */
export async function releasePaymentUse(tx: Db, link: LinkRef): Promise<void> {
  await returnUses(tx, link, 1);
}

async function returnUses(tx: Db, { merchantId, linkId }: LinkRef, count: number): Promise<void> {
  await tx
    .update(subscriptionLinks)
    .set({ uses: sql`${subscriptionLinks.uses} - ${count}` })
    .where(isRecord(subscriptionLinks, merchantId, linkId));
}

/** Returns the SQL condition for an unpaid payment of the link whose page has expired, as in `intentStatusAt`. */
function isExpired({ merchantId, linkId }: LinkRef, nowAt: number) {
  return and(
    hasValues(paymentIntents, { merchantId, linkId }),
    inArray(paymentIntents.status, ['CREATED', 'FAILED']),
    lte(paymentIntents.checkoutExpiresAt, nowAt),
  );
}
