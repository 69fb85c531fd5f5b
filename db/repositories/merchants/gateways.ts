import { and, asc, desc, eq, gte, isNotNull, sql } from 'drizzle-orm';
import type { Db } from '../../client.ts';
import { merchantGateways, merchants } from '../../schema/merchants.ts';
import type { MerchantMode } from '../../schema/merchants.ts';
import { paymentAttempts } from '../../schema/payments.ts';
import { operatorActions } from '../../schema/operator-actions.ts';
import { ADOPTED } from '../operator-actions.ts';
import { hasValues } from '../records.ts';

/** Time in ms for which the previous webhook secret stays valid. Stripe keeps a rolled secret for at most 24 h. */
const SECRET_OVERLAP_MS = 24 * 3_600_000;

export type GatewayRow = typeof merchantGateways.$inferSelect;

/** Returns the merchant's mode and accounts, the oldest first; null for an unknown merchant. */
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

/** Returns the queries that a process's gateway registry needs. */
export function gatewayRows(db: Db) {
  return {
    accountsOf: (merchantId: string) => findMerchantGateways(db, merchantId),
    ownersOf: (name: string) => findGatewayOwners(db, name),
    knownCharges: (merchantId: string, name: string) => ({
      newestSendAt: () => newestSendAt(db, merchantId, name),
      isKnown: (charge: { gatewayChargeId: string; createdAt: number }) =>
        isKnownCharge(db, charge),
    }),
  };
}

/** On test clocks, the ids of attempts do not have the order of their sends. */
const NEWEST_ATTEMPTS = 1_000;

/** Returns the real time of the newest send of the account's charges with the gateway's id; 0 without one. */
async function newestSendAt(db: Db, merchantId: string, name: string): Promise<number> {
  const { sentAt, id, gatewayChargeId } = paymentAttempts;
  const newest = db
    .select({ sentAt })
    .from(paymentAttempts)
    .where(
      and(hasValues(paymentAttempts, { merchantId, gateway: name }), isNotNull(gatewayChargeId)),
    )
    .orderBy(desc(id))
    .limit(NEWEST_ATTEMPTS)
    .as('newest');
  const last = sql`max(${newest.sentAt}[cardinality(${newest.sentAt})])`;
  const [row] = await db
    .select({ at: sql<number>`coalesce(extract(epoch from ${last}) * 1000, 0)::float8` })
    .from(newest);
  return row?.at ?? 0;
}

/** True if an attempt has the charge's id, or if `verify --adopt` was completed after the charge. */
async function isKnownCharge(
  db: Db,
  { gatewayChargeId, createdAt }: { gatewayChargeId: string; createdAt: number },
): Promise<boolean> {
  const isAdoption = and(eq(operatorActions.command, ADOPTED), gte(operatorActions.at, createdAt));
  return (
    (await db.$count(paymentAttempts, eq(paymentAttempts.gatewayChargeId, gatewayChargeId))) > 0 ||
    (await db.$count(operatorActions, isAdoption)) > 0
  );
}

/** Returns the merchants that have an account of this name, at most one in each mode. */
async function findGatewayOwners(db: Db, name: string): Promise<string[]> {
  const rows = await db
    .select({ merchantId: merchantGateways.merchantId })
    .from(merchantGateways)
    .where(eq(merchantGateways.name, name))
    .orderBy(asc(merchantGateways.mode));
  return rows.map(({ merchantId }) => merchantId);
}

export interface GatewayChange {
  merchantId: string;
  name: string;
  mode: MerchantMode;
  /** A new key and its last four characters. Null: the stored key stays. */
  key: { sealed: Buffer; ending: string } | null;
  /** Null: the stored secret stays. */
  sealedWebhookSecret: Buffer | null;
  /** True: the account becomes the current one. A new account always becomes the current one. */
  makeCurrent: boolean;
  nowAt: number;
}

/**
 * Adds or changes an account. The previous webhook secret stays valid for 24 h; a repeat with a secret ends it.
 * `taken`: another merchant's account. `unknown`: not stored, and `key` is null.
 */
export async function changeGateway(
  db: Db,
  change: GatewayChange,
): Promise<'added' | 'changed' | 'taken' | 'unknown'> {
  const { merchantId, name, mode, key, sealedWebhookSecret, nowAt } = change;
  return db.transaction(async (tx) => {
    // The changes of one merchant run one after another, because only one account may be the current one.
    await tx.select().from(merchants).where(eq(merchants.id, merchantId)).for('update');
    const [stored] = await tx
      .select()
      .from(merchantGateways)
      .where(hasValues(merchantGateways, { name, mode }));
    if (stored !== undefined && stored.merchantId !== merchantId) return 'taken';
    if (stored === undefined && key === null) return 'unknown';
    if (stored === undefined || change.makeCurrent) {
      await tx
        .update(merchantGateways)
        .set({ isCurrent: false })
        .where(eq(merchantGateways.merchantId, merchantId));
    }
    if (stored === undefined && key !== null) {
      await tx.insert(merchantGateways).values({
        merchantId,
        name,
        mode,
        sealedKey: key.sealed,
        keyEnding: key.ending,
        sealedWebhookSecret,
        isCurrent: true,
        createdAt: nowAt,
        updatedAt: nowAt,
      });
      return 'added';
    }
    await tx
      .update(merchantGateways)
      .set({
        updatedAt: nowAt,
        ...(key && { sealedKey: key.sealed, keyEnding: key.ending }),
        ...(change.makeCurrent && { isCurrent: true }),
        ...(sealedWebhookSecret && {
          sealedWebhookSecret,
          sealedPreviousWebhookSecret: sql`${merchantGateways.sealedWebhookSecret}`,
          previousWebhookSecretUntil: nowAt + SECRET_OVERLAP_MS,
        }),
      })
      .where(hasValues(merchantGateways, { merchantId, name }));
    return 'changed';
  });
}
