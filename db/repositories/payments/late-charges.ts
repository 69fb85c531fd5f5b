import { randomBytes } from 'node:crypto';

import { newId } from '../../../domain/ids.ts';
import { refundKey } from '../../../domain/refund.ts';
import type { AttemptRef } from '../../../domain/review.ts';
import { applyLateCharge } from '../../../domain/subscription/notes.ts';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentReviews, refunds } from '../../schema/payments.ts';
import { findAttempt } from '../subscriptions/attempts.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import { businessNow } from '../subscriptions/business-time.ts';
import { lockWithSubscription } from './orders.ts';
import { closeReview } from './reviews.ts';
import { writeChange } from '../subscriptions/write-change.ts';
import { hasValues } from '../records.ts';

/** `waiting`: not settled yet. `watched`: the watch runs. `over`: none runs. `found`: recorded. */
export type LateWatch =
  | { kind: 'waiting' }
  | { kind: 'over' }
  | { kind: 'watched'; attempt: Attempt }
  | { kind: 'found'; refundId: string; gatewayChargeId: string };

export async function lateWatch(db: Db, { merchantId, attemptId }: AttemptRef): Promise<LateWatch> {
  const [refund] = await db
    .select({ id: refunds.id, gatewayChargeId: refunds.gatewayChargeId })
    .from(refunds)
    .where(hasValues(refunds, { merchantId, lateAttemptId: attemptId }));
  if (refund) {
    return { kind: 'found', refundId: refund.id, gatewayChargeId: refund.gatewayChargeId };
  }
  const [review] = await db
    .select({ closedAt: paymentReviews.closedAt, outcome: paymentReviews.outcome })
    .from(paymentReviews)
    .where(hasValues(paymentReviews, { merchantId, subjectId: attemptId }));
  if (!review || review.closedAt !== null) return { kind: 'over' };
  const attempt = await findAttempt(db, { merchantId, id: attemptId });
  return attempt.state === 'DECLINED' ? { kind: 'watched', attempt } : { kind: 'waiting' };
}

export interface BookedLateCharge {
  refundId: string;
  /** The subscription whose timeline gets an entry; null for a payment without a subscription. */
  subscription: SubscriptionRef | null;
}

/**
 * Records a late charge, its refund and a timeline entry in one transaction. A repeat changes nothing. It never pays
 * its intent, which another attempt may have paid. `nowAt` is real time.
 */
export async function bookLateCharge(
  db: Db,
  attempt: Attempt,
  gatewayChargeId: string,
  nowAt: number,
): Promise<BookedLateCharge> {
  const { merchantId, intentId, id: attemptId, amountMinor, currency } = attempt;
  return db.transaction(async (tx): Promise<BookedLateCharge> => {
    const { intent, subscription, state } = await lockWithSubscription(tx, {
      merchantId,
      intentId,
    });
    const known = await lateWatch(tx, { merchantId, attemptId });
    if (known.kind === 'found') return { refundId: known.refundId, subscription };
    const at = await businessNow(tx, intent, nowAt);
    const refundId = newId('rf', nowAt, randomBytes);
    await tx.insert(refunds).values({
      merchantId,
      id: refundId,
      intentId,
      lateAttemptId: attemptId,
      state: 'CREATED',
      amountMinor,
      currency,
      gatewayKey: refundKey(attemptId),
      gatewayChargeId,
      createdAt: at,
    });
    await closeReview(tx, { merchantId, subjectId: attemptId });
    if (state) {
      const change = applyLateCharge(state, attempt, at);
      const transitionId = `late:${attemptId}`;
      await writeChange(tx, { change, transitionId, command: null, nowAt: at });
    }
    return { refundId, subscription };
  });
}
