import { eq, sql } from 'drizzle-orm';
import { noticeRulesOf } from '../../../domain/notice-rules.ts';
import type { NoticeRules } from '../../../domain/notice-rules.ts';
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

export async function loadRetryPlan(db: Db, merchantId: string): Promise<RetryPlan> {
  return (await loadSettings(db, merchantId)).retryPlan;
}

export async function loadNoticeRules(db: Db, merchantId: string): Promise<NoticeRules> {
  return noticeRulesOf(await loadSettings(db, merchantId));
}

/** Returns the merchant's current settings; null without such a merchant. `lock`: until the transaction ends. */
export async function findSettings(
  db: Db,
  merchantId: string,
  { lock = false } = {},
): Promise<MerchantSettings | null> {
  const query = db
    .select({ settings: merchants.settings })
    .from(merchants)
    .where(eq(merchants.id, merchantId));
  const [row] = await (lock ? query.for('update') : query);
  return row?.settings ?? null;
}

/**
 * Replaces the named settings. Retries that have begun keep their plan, subscriptions their jitter, and planned notices
 * their instants.
 */
export async function changeSettings(
  db: Db,
  merchantId: string,
  changes: Partial<MerchantSettings>,
): Promise<MerchantSettings | null> {
  const [row] = await db
    .update(merchants)
    .set({ settings: sql`${merchants.settings} || ${sql.param(changes)}::jsonb` })
    .where(eq(merchants.id, merchantId))
    .returning({ settings: merchants.settings });
  return row?.settings ?? null;
}
