import { isId } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { METHOD_OF_SUBSCRIPTION } from '../customers/payment-methods.ts';
import { isRecord } from '../records.ts';

/** A subscription as merchants read it: its row and its card. */
export type SubscriptionView = NonNullable<Awaited<ReturnType<typeof findSubscription>>>;

export function selectSubscriptions(db: Db) {
  return db
    .select({
      id: subscriptions.id,
      customerId: subscriptions.customerId,
      status: subscriptions.status,
      state: subscriptions.state,
      presentmentCurrency: subscriptions.presentmentCurrency,
      description: subscriptions.description,
      metadata: subscriptions.metadata,
      receiptId: subscriptions.receiptId,
      testClockId: subscriptions.testClockId,
      createdAt: subscriptions.createdAt,
      paymentMethod: paymentMethods,
    })
    .from(subscriptions)
    .leftJoin(paymentMethods, METHOD_OF_SUBSCRIPTION);
}

/** Returns the merchant's subscription; null for an unknown id and for another merchant's id. */
export async function findSubscription(db: Db, merchantId: string, subscriptionId: string) {
  if (!isId('sub', subscriptionId)) return null;
  const [row] = await selectSubscriptions(db).where(
    isRecord(subscriptions, merchantId, subscriptionId),
  );
  return row ?? null;
}

export const hasSubscription = async (db: Db, merchantId: string, id: string): Promise<boolean> =>
  isId('sub', id) && (await db.$count(subscriptions, isRecord(subscriptions, merchantId, id))) > 0;

/**
 * Returns the subscription data that a one-time charge needs, and locks the row `for share` until the
 * transaction ends. Null for an unknown subscription.
 */
export async function findChargeable(tx: Db, merchantId: string, subscriptionId: string) {
  if (!isId('sub', subscriptionId)) return null;
  const [row] = await tx
    .select({
      state: subscriptions.state,
      customerId: subscriptions.customerId,
      customerDetails: subscriptions.customerDetails,
    })
    .from(subscriptions)
    .where(isRecord(subscriptions, merchantId, subscriptionId))
    .for('share');
  return row ?? null;
}
