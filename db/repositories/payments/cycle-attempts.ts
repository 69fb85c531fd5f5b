import { asc } from 'drizzle-orm';
import type { SubscriptionRef } from '../../../domain/subscription/state.ts';
import type { Db } from '../../client.ts';
import { paymentAttempts, paymentIntents } from '../../schema/payments.ts';
import { hasValues } from '../records.ts';
import type { Attempt } from '../subscriptions/attempts.ts';
import { disputesOf } from './disputes.ts';
import type { Dispute } from './disputes.ts';
import { refundsOf } from './refunds.ts';
import type { Refund } from './refunds.ts';

/** An attempt on a billing cycle, with what followed: refunds and disputes of its charge. */
export interface CycleAttempt {
  attempt: Attempt;
  cycleNumber: number;
  dueAt: number | null;
  refunds: Refund[];
  disputes: Dispute[];
}

/** Returns the attempts on the subscription's cycles, oldest first, without the first `after`. */
export async function listCycleAttempts(
  db: Db,
  { merchantId, subscriptionId }: SubscriptionRef,
  { after, limit }: { after: number; limit: number },
): Promise<CycleAttempt[]> {
  const rows = await db
    .select({
      attempt: paymentAttempts,
      cycleNumber: paymentIntents.cycleNumber,
      dueAt: paymentIntents.dueAt,
    })
    .from(paymentIntents)
    .innerJoin(
      paymentAttempts,
      hasValues(paymentAttempts, {
        merchantId: paymentIntents.merchantId,
        intentId: paymentIntents.id,
      }),
    )
    .where(hasValues(paymentIntents, { merchantId, subscriptionId, kind: 'cycle' }))
    .orderBy(asc(paymentIntents.cycleNumber), asc(paymentAttempts.attemptNumber))
    .offset(after)
    .limit(limit);
  const intentIds = [...new Set(rows.map(({ attempt }) => attempt.intentId))];
  if (intentIds.length === 0) return [];
  const [refunded, disputed] = await Promise.all([
    refundsOf(db, merchantId, intentIds),
    disputesOf(db, merchantId, intentIds),
  ]);
  return rows.map(({ attempt, cycleNumber, dueAt }) => {
    const isPaid = attempt.state === 'SUCCEEDED';
    return {
      attempt,
      cycleNumber: cycleNumber ?? 0,
      dueAt,
      // A refund without a late attempt returns the charge that paid the intent.
      refunds: refunded.filter(({ intentId, lateAttemptId }) =>
        lateAttemptId === null
          ? isPaid && intentId === attempt.intentId
          : lateAttemptId === attempt.id,
      ),
      disputes: disputed.filter(({ attemptId }) => attemptId === attempt.id),
    };
  });
}
