import { and, desc, eq, gt, sql } from 'drizzle-orm';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkouts.ts';
import { customers } from '../../schema/customers.ts';
import { linkUses, subscriptionLinks, subscriptions } from '../../schema/subscriptions.ts';
import { merchants } from '../../schema/merchants.ts';
import { hashToken } from '../checkouts/sessions.ts';
import { countExpiredUses, releaseExpiredUses } from '../payments/link-uses.ts';
import { hasValues, isRecord } from '../records.ts';

export type NewLink = Omit<typeof subscriptionLinks.$inferInsert, 'uses'>;

export async function insertLink(tx: Db, link: NewLink): Promise<void> {
  await tx.insert(subscriptionLinks).values(link);
}

/** A link with the data of its page: its merchant and, if it has a customer, the customer's details. */
export interface Link {
  readonly template: typeof subscriptionLinks.$inferSelect;
  readonly merchant: Pick<typeof merchants.$inferSelect, 'id' | 'name' | 'mode' | 'settings'>;
  readonly savedDetails: (typeof customers.$inferSelect)['details'] | null;
  /** Number of uses that are counted for payments which were not made in time. Another payer may take these uses. */
  readonly expiredUses: number;
}

/** Returns the link of a code at `nowAt`, even an expired or used-up link. Null for an unknown code. */
export async function findLink(db: Db, code: string, nowAt: number): Promise<Link | null> {
  const [row] = await db
    .select({
      template: subscriptionLinks,
      merchant: {
        id: merchants.id,
        name: merchants.name,
        mode: merchants.mode,
        settings: merchants.settings,
      },
      savedDetails: customers.details,
    })
    .from(subscriptionLinks)
    .innerJoin(merchants, eq(merchants.id, subscriptionLinks.merchantId))
    .leftJoin(
      customers,
      isRecord(customers, subscriptionLinks.merchantId, subscriptionLinks.customerId),
    )
    .where(eq(subscriptionLinks.code, code));
  if (!row) return null;
  const { merchantId, id: linkId, payment } = row.template;
  const expiredUses =
    payment === null ? 0 : await countExpiredUses(db, { merchantId, linkId }, nowAt);
  return { ...row, expiredUses };
}

/** True if a new payer may use the link at `nowAt`. {@link takeLinkUse} checks again under a lock. */
export function isUsable({ template, expiredUses }: Link, nowAt: number): boolean {
  return template.uses - expiredUses < template.multiUseLimit && nowAt < template.expiresAt;
}

/** Maximum number of uses of one link that one address takes in {@link ADDRESS_WINDOW_MS}. */
const USES_OF_ADDRESS_MAX = 5;
const ADDRESS_WINDOW_MS = 10 * 60_000;

export interface LinkPayer {
  /** The token of the checkout that the caller creates in the same transaction. */
  readonly checkoutToken: string;
  readonly addressHash: Buffer;
}

/**
 * The result of {@link takeLinkUse}. `repeated`: the checkout exists already, and no use was counted. `gone`:
 * the link is used up or expired. `limited`: the payer's address cannot take another use before `untilAt`.
 */
export type LinkUse =
  | { kind: 'taken' }
  | { kind: 'repeated' }
  | { kind: 'gone' }
  | { kind: 'limited'; untilAt: number };

/**
 * Counts a use for the link and for the payer's address, after it released the uses of unpaid payments. Locks the
 * link's row, so that parallel calls exceed no limit. `nowAt` is real time.
 */
export async function takeLinkUse(
  tx: Db,
  { template: { merchantId, id: linkId, payment } }: Link,
  { checkoutToken, addressHash }: LinkPayer,
  nowAt: number,
): Promise<LinkUse> {
  const isLink = isRecord(subscriptionLinks, merchantId, linkId);
  const { uses, multiUseLimit, expiresAt } = subscriptionLinks;
  const [link] = await tx
    .select({ uses, multiUseLimit, expiresAt })
    .from(subscriptionLinks)
    .where(isLink)
    .for('no key update');
  const tokenHash = hashToken(checkoutToken);
  const [checkout] = await tx
    .select({ id: checkoutSessions.id })
    .from(checkoutSessions)
    .where(eq(checkoutSessions.tokenHash, tokenHash));
  if (checkout) return { kind: 'repeated' };
  if (!link) return { kind: 'gone' };
  const returned =
    payment === null ? 0 : await releaseExpiredUses(tx, { merchantId, linkId }, nowAt);
  const used = link.uses - returned;
  if (used >= link.multiUseLimit || nowAt >= link.expiresAt) return { kind: 'gone' };
  const isOfAddress = hasValues(linkUses, { merchantId, linkId, addressHash });
  const begun = await tx
    .select({ at: linkUses.begunAt })
    .from(linkUses)
    .where(and(isOfAddress, gt(linkUses.begunAt, nowAt - ADDRESS_WINDOW_MS)))
    .orderBy(desc(linkUses.begunAt))
    .limit(USES_OF_ADDRESS_MAX);
  const oldest = begun[USES_OF_ADDRESS_MAX - 1];
  if (oldest) return { kind: 'limited', untilAt: oldest.at + ADDRESS_WINDOW_MS };
  await tx.insert(linkUses).values({ merchantId, linkId, addressHash, tokenHash, begunAt: nowAt });
  await tx
    .update(subscriptionLinks)
    .set({ uses: used + 1 })
    .where(isLink);
  return { kind: 'taken' };
}

/**
 * Releases the link use of a subscription that ended unpaid. Does nothing without a link. A repeat releases
 * another use, so the caller must call this once for each subscription.
 */
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
