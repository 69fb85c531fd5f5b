import { and, asc, eq, gte, isNotNull } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { IntentRef } from '../../../domain/payment-intent.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentIntents } from '../../schema/payments.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { hasValues, isRecord } from '../records.ts';
import { CARD, METHOD_OF_INTENT } from '../customers/payment-methods.ts';

export type PaidPayment = NonNullable<Awaited<ReturnType<typeof readPaid>>>;

/** Returns the payment of an intent; null if the intent is unknown or not paid. */
export async function findPaid(
  db: Db,
  { merchantId, intentId }: IntentRef,
): Promise<PaidPayment | null> {
  return readPaid(db, isRecord(paymentIntents, merchantId, intentId));
}

/** Returns the payment of the subscription's first cycle; null if it is not paid. */
export async function findFirstPaid(db: Db, ref: SubscriptionRef): Promise<PaidPayment | null> {
  return readPaid(db, and(isOf(ref), eq(paymentIntents.cycleNumber, 1)));
}

/** Returns the earliest payment of a cycle that succeeded at `sinceAt` (business time) or later; null if none did. */
export async function findPaidSince(
  db: Db,
  ref: SubscriptionRef,
  sinceAt: number,
): Promise<PaidPayment | null> {
  return readPaid(
    db,
    and(isOf(ref), isNotNull(paymentIntents.cycleNumber), gte(paymentIntents.succeededAt, sinceAt)),
  );
}

function isOf({ merchantId, subscriptionId }: SubscriptionRef) {
  return hasValues(paymentIntents, { merchantId, subscriptionId });
}

/** `paidAt`: business time, which is the time of the subscription's test clock, else real time. */
async function readPaid(db: Db, condition: SQL | undefined) {
  const [row] = await db
    .select({
      intentId: paymentIntents.id,
      customerId: paymentIntents.customerId,
      subscriptionId: paymentIntents.subscriptionId,
      description: paymentIntents.description,
      receiptId: paymentIntents.receiptId,
      amountMinor: paymentIntents.amountMinor,
      refundedMinor: paymentIntents.refundedMinor,
      currency: paymentIntents.currency,
      paidAt: paymentIntents.succeededAt,
      card: CARD,
    })
    .from(paymentIntents)
    .leftJoin(paymentMethods, METHOD_OF_INTENT)
    .where(and(condition, isNotNull(paymentIntents.succeededAt)))
    .orderBy(asc(paymentIntents.succeededAt), asc(paymentIntents.id))
    .limit(1);
  if (row === undefined || row.paidAt === null) return null;
  return { ...row, paidAt: row.paidAt };
}
