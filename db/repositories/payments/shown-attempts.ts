import { and, desc, isNotNull, sql } from 'drizzle-orm';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts } from '../../schema/payments.ts';
import { hasValues } from '../records.ts';

/** Records that the payer gave another card: the charge is withdrawn. False: no bank waits. */
export async function leaveBank(
  db: Db,
  { merchantId, intentId }: IntentRef,
  nowAt: number,
): Promise<boolean> {
  const left = await db
    .update(paymentAttempts)
    .set({
      payerLeftAt: sql`coalesce(${paymentAttempts.payerLeftAt}, ${new Date(nowAt).toISOString()})`,
    })
    .where(
      and(
        hasValues(paymentAttempts, { merchantId, intentId, state: 'UNKNOWN' }),
        isNotNull(paymentAttempts.payerUrl),
      ),
    )
    .returning({ id: paymentAttempts.id });
  return left.length > 0;
}

/** The latest attempt of an intent, as its hosted page shows it. */
export type ShownAttempt = Pick<
  typeof paymentAttempts.$inferSelect,
  'sessionId' | 'trigger' | 'state' | 'errorCode' | 'payerUrl' | 'payerAskedAt'
>;

export async function latestAttempt(
  db: Db,
  { merchantId, intentId }: IntentRef,
): Promise<ShownAttempt | null> {
  const { sessionId, trigger, state, errorCode, payerUrl, payerAskedAt } = paymentAttempts;
  const [row] = await db
    .select({ sessionId, trigger, state, errorCode, payerUrl, payerAskedAt })
    .from(paymentAttempts)
    .where(hasValues(paymentAttempts, { merchantId, intentId }))
    .orderBy(desc(paymentAttempts.attemptNumber))
    .limit(1);
  return row ?? null;
}
