import { and, eq } from 'drizzle-orm';
import { isId } from '../../../domain/ids.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { METHOD_OF_SUBSCRIPTION } from '../customers/payment-methods.ts';
import { isRecord } from '../records.ts';
import { ORDER } from './row.ts';

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

/** A version of a subscription: the one of the run that calls. */
export interface VersionRef extends SubscriptionRef {
  version: number;
}

export function isRow(ref: SubscriptionRef) {
  return isRecord(subscriptions, ref.merchantId, ref.subscriptionId);
}

export function isVersion(at: VersionRef) {
  return and(isRow(at), eq(subscriptions.version, at.version));
}

const RECORDED = {
  state: subscriptions.state,
  lastTransitionId: subscriptions.lastTransitionId,
  heldAt: subscriptions.heldAt,
  order: ORDER,
};

/** Reads what was last recorded of the subscription. Throws for an unknown subscription. */
export async function loadRow(tx: Db, ref: SubscriptionRef) {
  return existing(await tx.select(RECORDED).from(subscriptions).where(isRow(ref)), ref);
}

/**
 * Reads the subscription's row and locks it until the transaction ends. Code that opens or settles an
 * attempt takes this lock first, so that two runs of one subscription cannot deadlock.
 */
export async function lockRow(tx: Db, ref: SubscriptionRef) {
  return existing(
    await tx.select(RECORDED).from(subscriptions).where(isRow(ref)).for('update'),
    ref,
  );
}

function existing<Row>([row]: Row[], { subscriptionId }: SubscriptionRef): Row {
  if (!row) throw new Error(`no subscription ${subscriptionId}`);
  return row;
}
