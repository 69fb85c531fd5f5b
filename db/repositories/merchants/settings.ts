import { eq, sql } from 'drizzle-orm';
import type { RetryPlan } from '../../../domain/retry-plan.ts';
import type { Db } from '../../client.ts';
import { merchants } from '../../schema/merchants.ts';
import type { MerchantSettings } from '../../schema/merchants.ts';

/** Returns the merchant's current settings. Throws if the merchant does not exist. */
export async function loadSettings(db: Db, merchantId: string): Promise<MerchantSettings> {
  const settings = await findSettings(db, merchantId);
  if (!settings) throw new Error(`no merchant ${merchantId}`);
  return settings;
}

/** Returns the merchant's current retry plan. Rule: D-30. */
export async function loadRetryPlan(db: Db, merchantId: string): Promise<RetryPlan> {
  return (await loadSettings(db, merchantId)).retryPlan;
}

/** Returns the merchant's current settings; null if the merchant does not exist. */
export async function findSettings(db: Db, merchantId: string): Promise<MerchantSettings | null> {
  const [row] = await db
    .select({ settings: merchants.settings })
    .from(merchants)
    .where(eq(merchants.id, merchantId));
  return row?.settings ?? null;
}

/**
 * Replaces the settings named in `changes`, in one statement, and returns all settings. Null if the merchant
 * does not exist. Automatic retries that have begun keep their retry plan until a charge of a new payment method is
 * declined; after that the new plan applies. A subscription keeps its jitter. Rule: D-30.
 */
export async function changeSettings(
  db: Db,
  merchantId: string,
  changes: Partial<MerchantSettings>,
): Promise<MerchantSettings | null> {
  const [row] = await db
    .update(merchants)
    .set({ settings: sql`${merchants.settings} || ${JSON.stringify(changes)}::jsonb` })
    .where(eq(merchants.id, merchantId))
    .returning({ settings: merchants.settings });
  return row?.settings ?? null;
}
