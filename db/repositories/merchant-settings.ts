import { eq } from 'drizzle-orm';
import type { RetryPlan } from '../../domain/retry-plan.ts';
import type { Db } from '../client.ts';
import { merchants } from '../schema/merchants.ts';

/** The merchant's retry plan as it stands now. Rule: D-30. */
export async function loadRetryPlan(db: Db, merchantId: string): Promise<RetryPlan> {
  const [row] = await db
    .select({ settings: merchants.settings })
    .from(merchants)
    .where(eq(merchants.id, merchantId));
  if (!row) throw new Error(`no merchant ${merchantId}`);
  return row.settings.retryPlan;
}
