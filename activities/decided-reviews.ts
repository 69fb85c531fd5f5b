import type { Orders } from '../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../temporal/subscription-workflows.ts';

/**
 * A manual review of an attempt or a refund that has a decision: an operator's, or the automatic `not_charged` for a
 * voided attempt.
 */
export interface DecidedReview {
  merchantId: string;
  /** The id of the attempt or the refund. */
  subjectId: string;
  intentId: string;
  subscriptionId: string | null;
  cycleNumber: number | null;
  /** The state of the attempt or the refund: REVIEW until its workflow has recorded the decision. */
  state: string;
}

/**
 * Makes the workflow of the attempt or the refund record the decision. If an attempt is already recorded as
 * not paid, starts its late-charge watch instead, which looks for a charge that the gateway makes later. Returns false
 * if that watch already runs. A repeat is safe. Throws if Temporal is unreachable; a later sweep then repeats the call.
 */
export async function followUp(
  review: DecidedReview,
  subscriptions: Pick<SubscriptionWorkflows, 'recheck'>,
  orders: Pick<Orders, 'ensureRunning' | 'recheck'>,
): Promise<boolean> {
  const { merchantId, subjectId, intentId, subscriptionId, cycleNumber, state } = review;
  if (subjectId.startsWith('rf_')) {
    await orders.recheck('refund', { merchantId, refundId: subjectId });
    return true;
  }
  if (state !== 'REVIEW') {
    return orders.ensureRunning('lateCharge', { merchantId, attemptId: subjectId });
  }
  if (subscriptionId !== null && cycleNumber !== null) {
    await subscriptions.recheck({ merchantId, subscriptionId });
  } else {
    await orders.recheck('payment', { merchantId, intentId, token: null });
  }
  return true;
}
