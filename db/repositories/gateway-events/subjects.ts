import { and, eq, inArray, isNull, like, or } from 'drizzle-orm';
import type { GatewayHint } from '../../../domain/gateway-hint.ts';
import type { Db } from '../../client.ts';
import { checkoutSessions } from '../../schema/checkouts.ts';
import { paymentAttempts, paymentIntents, paymentReviews, refunds } from '../../schema/payments.ts';
import { paymentMethods } from '../../schema/customers.ts';
import type { PaymentMethod } from '../customers/payment-methods.ts';
import { findRecord, hasValues, isRecord } from '../records.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import type { GatewayAccount } from './events.ts';

/** `subscriptionId`: null outside the billing cycles. `isWatched`: a late-charge watch waits for the charge. */
export async function findNamedAttempt(
  db: Db,
  { merchantId, gateway }: GatewayAccount,
  gatewayChargeId: string,
) {
  const [row] = await db
    .select({
      attempt: paymentAttempts,
      subscriptionId: paymentIntents.subscriptionId,
      cycleNumber: paymentIntents.cycleNumber,
      reviewId: paymentReviews.subjectId,
    })
    .from(paymentAttempts)
    .innerJoin(
      paymentIntents,
      isRecord(paymentIntents, paymentAttempts.merchantId, paymentAttempts.intentId),
    )
    .leftJoin(
      paymentReviews,
      and(
        hasValues(paymentReviews, {
          merchantId: paymentAttempts.merchantId,
          subjectId: paymentAttempts.id,
        }),
        isNull(paymentReviews.closedAt),
      ),
    )
    .where(hasValues(paymentAttempts, { merchantId, gateway, gatewayChargeId }));
  if (!row) return null;
  const { attempt, reviewId } = row;
  return {
    attempt,
    subscriptionId: row.cycleNumber === null ? null : row.subscriptionId,
    isWatched: attempt.state === 'DECLINED' && reviewId !== null,
  };
}

/** True if the outcome of the attempt's charge is not recorded yet. */
export function isUndecided({ state }: Attempt): boolean {
  return state !== 'SUCCEEDED' && state !== 'DECLINED';
}

/** Finds a sent refund by our key or the gateway's id; null also if it is REFUSED. */
export async function findNamedRefund(
  db: Db,
  { merchantId, gateway }: GatewayAccount,
  { key, gatewayRefundId }: { key: string | null; gatewayRefundId: string },
): Promise<string | null> {
  const [row] = await db
    .select({ id: refunds.id })
    .from(refunds)
    .innerJoin(
      paymentAttempts,
      hasValues(paymentAttempts, {
        merchantId: refunds.merchantId,
        intentId: refunds.intentId,
        gatewayChargeId: refunds.gatewayChargeId,
        gateway,
      }),
    )
    .where(
      and(
        eq(refunds.merchantId, merchantId),
        or(eq(refunds.gatewayKey, key ?? ''), eq(refunds.gatewayRefundId, gatewayRefundId)),
        // A refund may fail at the gateway days after it succeeded.
        inArray(refunds.state, ['SENDING', 'UNKNOWN', 'PENDING', 'REVIEW', 'SUCCEEDED']),
      ),
    )
    .limit(1);
  return row?.id ?? null;
}

/**
 * Returns the account's method that an event names. An event of a detached method has only the part after the `/` of
 * the stored id.
 */
export async function findNamedMethod(
  db: Db,
  { merchantId, gateway }: GatewayAccount,
  gatewayMethodId: string,
): Promise<PaymentMethod | null> {
  const isOwn = hasValues(paymentMethods, { merchantId, gateway });
  const [row] = await db
    .select()
    .from(paymentMethods)
    .where(
      and(
        isOwn,
        or(
          eq(paymentMethods.gatewayMethodId, gatewayMethodId),
          gatewayMethodId.includes('/')
            ? undefined
            : like(paymentMethods.gatewayMethodId, `%/${gatewayMethodId.replaceAll('_', '\\_')}`),
        ),
      ),
    );
  return row ?? null;
}

export type NamedSession = typeof checkoutSessions.$inferSelect;

export const findNamedSession = (db: Db, merchantId: string, id: string) =>
  findRecord(db, checkoutSessions, merchantId, id);

/** True if a workflow must handle the event of the hint. Reads only. */
export async function isWaitedFor(
  db: Db,
  account: GatewayAccount,
  hint: GatewayHint,
): Promise<boolean> {
  switch (hint.kind) {
    case 'charge': {
      const named = await findNamedAttempt(db, account, hint.gatewayChargeId);
      return named !== null && (isUndecided(named.attempt) || named.isWatched);
    }
    case 'refund':
      return (await findNamedRefund(db, account, hint)) !== null;
    case 'dispute':
    case 'fraud_warning':
      return (await findNamedAttempt(db, account, hint.gatewayChargeId)) !== null;
    case 'method':
      return (await findNamedMethod(db, account, hint.gatewayMethodId)) !== null;
    case 'card_entry':
      return (await findNamedSession(db, account.merchantId, hint.session)) !== null;
    case 'ignored':
      return false;
  }
}
