import { and, asc, eq, inArray } from 'drizzle-orm';
import { isId } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import { paymentMethods } from '../../schema/customers.ts';
import { subscriptions } from '../../schema/subscriptions.ts';
import { disputesOf } from './disputes.ts';
import type { Dispute } from './disputes.ts';
import { refundsOf } from './refunds.ts';
import type { Refund } from './refunds.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import { hasUpfrontAmount } from '../subscriptions/row.ts';
import { isRecord } from '../records.ts';
import { METHOD_OF_INTENT } from '../customers/payment-methods.ts';

type IntentRow = Awaited<ReturnType<typeof selectIntents>>[number];

/** An intent as merchants read it. `order`: of its subscription. `method`: of the latest attempt. */
export interface IntentRecord extends IntentRow {
  attempts: Attempt[];
  refunds: Refund[];
  disputes: Dispute[];
}

export function selectIntents(db: Db) {
  return db
    .select({
      id: paymentIntents.id,
      createdAt: paymentIntents.createdAt,
      settledAt: paymentIntents.succeededAt,
      intent: paymentIntents,
      method: paymentMethods,
      hasUpfrontAmount,
      order: {
        description: subscriptions.description,
        callbackUrl: subscriptions.callbackUrl,
        cancelUrl: subscriptions.cancelUrl,
      },
    })
    .from(paymentIntents)
    .leftJoin(paymentMethods, METHOD_OF_INTENT)
    .leftJoin(
      subscriptions,
      isRecord(subscriptions, paymentIntents.merchantId, paymentIntents.subscriptionId),
    );
}

/** Returns the merchant's intent; null for an unknown id and for another merchant's id. */
export async function findIntentRecord(
  db: Db,
  merchantId: string,
  intentId: string,
): Promise<IntentRecord | null> {
  if (!isId('in', intentId)) return null;
  const rows = await selectIntents(db).where(isRecord(paymentIntents, merchantId, intentId));
  const [record] = await withAttempts(db, merchantId, rows);
  return record ?? null;
}

/** Adds the attempts, the refunds and the disputes to the intents, which stay in the sequence of `rows`. */
export async function withAttempts(
  db: Db,
  merchantId: string,
  rows: readonly IntentRow[],
): Promise<IntentRecord[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const attempts = await db
    .select()
    .from(paymentAttempts)
    .where(and(eq(paymentAttempts.merchantId, merchantId), inArray(paymentAttempts.intentId, ids)))
    .orderBy(asc(paymentAttempts.attemptNumber));
  const refunds = await refundsOf(db, merchantId, ids);
  const disputes = await disputesOf(db, merchantId, ids);
  return rows.map((row) => ({
    ...row,
    attempts: attempts.filter(({ intentId }) => intentId === row.id),
    refunds: refunds.filter(({ intentId }) => intentId === row.id),
    disputes: disputes.filter(({ intentId }) => intentId === row.id),
  }));
}
