import { and, asc, eq, ne, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { merchantGateways } from '../../schema/merchant-gateways.ts';
import { merchants } from '../../schema/merchants.ts';
import type { MerchantMode } from '../../schema/merchants.ts';

/** How long the previous webhook secret stays valid. Stripe keeps a rolled secret for at most 24 h. */
const SECRET_OVERLAP_MS = 24 * 3_600_000;

export type GatewayRow = typeof merchantGateways.$inferSelect;

/**
 * Returns the merchant's mode and accounts at gateways, the oldest first. Null if there is no such merchant.
 */
export async function findMerchantGateways(
  db: Db,
  merchantId: string,
): Promise<{ mode: MerchantMode; accounts: GatewayRow[] } | null> {
  const rows = await db
    .select({ mode: merchants.mode, account: merchantGateways })
    .from(merchants)
    .leftJoin(merchantGateways, eq(merchantGateways.merchantId, merchants.id))
    .where(eq(merchants.id, merchantId))
    .orderBy(asc(merchantGateways.createdAt), asc(merchantGateways.name));
  const [first] = rows;
  if (!first) return null;
  return { mode: first.mode, accounts: rows.flatMap(({ account }) => account ?? []) };
}

export interface GatewayEntry {
  merchantId: string;
  /** Such as `stripe:acct_…`. */
  name: string;
  mode: MerchantMode;
  sealedKey: Buffer;
  keyEnding: string;
  /** Null: no new secret. */
  sealedWebhookSecret: Buffer | null;
  nowAt: number;
}

/**
 * Stores an account of a merchant, or the new key of an account that is stored already, and makes the account
 * the current one. A new webhook secret leaves the previous one valid for 24 h. Returns `taken` and changes
 * nothing if the account belongs to another merchant. A repeat is safe.
 */
export async function saveGateway(
  db: Db,
  { nowAt, ...entry }: GatewayEntry,
): Promise<'added' | 'replaced' | 'taken'> {
  const { merchantId, name, mode, sealedKey, keyEnding, sealedWebhookSecret } = entry;
  return db.transaction(async (tx) => {
    // Entries of one merchant run one after another, because only one account may be current.
    await tx.select().from(merchants).where(eq(merchants.id, merchantId)).for('update');
    const [owner] = await tx
      .select()
      .from(merchantGateways)
      .where(and(eq(merchantGateways.name, name), eq(merchantGateways.mode, mode)));
    if (owner !== undefined && owner.merchantId !== merchantId) return 'taken';
    await tx
      .update(merchantGateways)
      .set({ isCurrent: false })
      .where(and(eq(merchantGateways.merchantId, merchantId), ne(merchantGateways.name, name)));
    const rotated =
      sealedWebhookSecret === null
        ? {}
        : {
            sealedWebhookSecret,
            sealedPreviousWebhookSecret: sql`${merchantGateways.sealedWebhookSecret}`,
            previousWebhookSecretUntil: nowAt + SECRET_OVERLAP_MS,
          };
    await tx
      .insert(merchantGateways)
      .values({ ...entry, isCurrent: true, createdAt: nowAt, updatedAt: nowAt })
      .onConflictDoUpdate({
        target: [merchantGateways.merchantId, merchantGateways.name],
        set: { sealedKey, keyEnding, isCurrent: true, updatedAt: nowAt, ...rotated },
      });
    return owner === undefined ? 'added' : 'replaced';
  });
}
