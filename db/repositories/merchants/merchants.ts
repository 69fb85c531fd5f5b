import { randomBytes } from 'node:crypto';
import { asc, eq } from 'drizzle-orm';
import { newId } from '../../../domain/ids.ts';
import { DEFAULT_RETRY_PLAN } from '../../../domain/retry-plan.ts';
import type { Db } from '../../client.ts';
import { merchants } from '../../schema/merchants.ts';
import type { MerchantMode } from '../../schema/merchants.ts';
import { issueCredential } from './credentials.ts';
import type { IssuedCredential } from './credentials.ts';

export interface CreatedMerchant extends IssuedCredential {
  merchantId: string;
}

export async function createMerchantWithCredential(
  db: Db,
  merchant: { name: string; mode: MerchantMode; pepper: string; nowAt?: number },
): Promise<CreatedMerchant> {
  const { name, mode, pepper, nowAt = Date.now() } = merchant;
  const merchantId = newId('mer', nowAt, randomBytes);
  return db.transaction(async (tx) => {
    await tx.insert(merchants).values({
      id: merchantId,
      name,
      mode,
      settings: { retryPlan: DEFAULT_RETRY_PLAN },
      createdAt: nowAt,
    });
    const issued = await issueCredential(tx, { merchantId, mode, pepper, nowAt });
    return { merchantId, ...issued };
  });
}

/** Null for an unknown id. */
export async function findMerchant(
  db: Db,
  id: string,
): Promise<Pick<typeof merchants.$inferSelect, 'id' | 'name' | 'settings'> | null> {
  const { name, settings } = merchants;
  const [merchant] = await db
    .select({ id: merchants.id, name, settings })
    .from(merchants)
    .where(eq(merchants.id, id));
  return merchant ?? null;
}

export async function listMerchants(db: Db) {
  return db
    .select({
      id: merchants.id,
      name: merchants.name,
      mode: merchants.mode,
      createdAt: merchants.createdAt,
    })
    .from(merchants)
    .orderBy(asc(merchants.createdAt), asc(merchants.id));
}
