import { and, eq, gt, lt, sql } from 'drizzle-orm';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkout-sessions.ts';
import { customers } from '../../schema/customers.ts';
import { merchants } from '../../schema/merchants.ts';
import { subscriptionLinks } from '../../schema/subscription-links.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { hashCheckoutToken } from '../checkouts/sessions.ts';
import { isRecord } from '../is-record.ts';

export async function insertLink(
  tx: Db,
  link: Omit<typeof subscriptionLinks.$inferInsert, 'uses'>,
): Promise<void> {
  await tx.insert(subscriptionLinks).values(link);
}

/** A link with the data of its page: its merchant and, if it has a customer, the customer's details. */
export interface Link {
  readonly template: typeof subscriptionLinks.$inferSelect;
  readonly merchant: Pick<typeof merchants.$inferSelect, 'name' | 'mode'>;
  readonly savedDetails: (typeof customers.$inferSelect)['details'] | null;
}

/** Returns the link of a code, also if it is expired or used up. Null for an unknown code. */
export async function findLink(db: Db, code: string): Promise<Link | null> {
  const [row] = await db
    .select({
      template: subscriptionLinks,
      merchant: { name: merchants.name, mode: merchants.mode },
      savedDetails: customers.details,
    })
    .from(subscriptionLinks)
    .innerJoin(merchants, eq(merchants.id, subscriptionLinks.merchantId))
    .leftJoin(
      customers,
      isRecord(customers, subscriptionLinks.merchantId, subscriptionLinks.customerId),
    )
    .where(eq(subscriptionLinks.code, code));
  return row ?? null;
}

/** True if a new payer may use the link at `nowAt`. {@link takeLinkUse} checks again under a lock. */
export function isUsable({ template }: Link, nowAt: number): boolean {
  return template.uses < template.multiUseLimit && nowAt < template.expiresAt;
}

/**
 * Counts a use of a link for the checkout of `checkoutToken`, which the caller creates in the same
 * transaction. `repeated`: the checkout exists already, and no use was counted. `gone`: the link is used up
 * or expired. Locks the link's row until the transaction ends, so that a concurrent call with the same token
 * finds the checkout. Rule: D-37.
 */
export async function takeLinkUse(
  tx: Db,
  { template: { merchantId, id } }: Link,
  checkoutToken: string,
  nowAt: number,
): Promise<'taken' | 'repeated' | 'gone'> {
  const isLink = isRecord(subscriptionLinks, merchantId, id);
  await tx
    .select({ id: subscriptionLinks.id })
    .from(subscriptionLinks)
    .where(isLink)
    .for('no key update');
  const [checkout] = await tx
    .select({ id: checkoutSessions.id })
    .from(checkoutSessions)
    .where(eq(checkoutSessions.tokenHash, hashCheckoutToken(checkoutToken)));
  if (checkout) return 'repeated';
  const taken = await tx
    .update(subscriptionLinks)
    .set({ uses: sql`${subscriptionLinks.uses} + 1` })
    .where(
      and(
        isLink,
        lt(subscriptionLinks.uses, subscriptionLinks.multiUseLimit),
        gt(subscriptionLinks.expiresAt, nowAt),
      ),
    )
    .returning({ uses: subscriptionLinks.uses });
  return taken.length > 0 ? 'taken' : 'gone';
}

/** Releases the link use of a subscription that ended unpaid. Does nothing without a link. Rule: D-37. */
export async function releaseLinkUse(tx: Db, ref: SubscriptionRef): Promise<void> {
  const linkId = tx
    .select({ id: subscriptions.linkId })
    .from(subscriptions)
    .where(isRecord(subscriptions, ref.merchantId, ref.subscriptionId));
  await tx
    .update(subscriptionLinks)
    .set({ uses: sql`${subscriptionLinks.uses} - 1` })
    .where(isRecord(subscriptionLinks, ref.merchantId, sql`(${linkId})`));
}
