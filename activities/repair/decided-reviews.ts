import type { ListedReview } from '../../db/repositories/payments/reviews.ts';
import type { Orders } from '../../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';

/** A decided review. `state` is REVIEW until a workflow has recorded the decision. */
type DecidedReview = Pick<
  ListedReview,
  'merchantId' | 'subjectId' | 'intentId' | 'subscriptionId' | 'cycleNumber' | 'state'
>;

/**
 * Makes a workflow record the decision, or starts the late-charge watch; false if the watch runs already. A repeat is
 * safe. Throws if Temporal is unreachable.
 */
export async function followUp(
  review: DecidedReview,
  subscriptions: Pick<SubscriptionWorkflows, 'recheck'>,
  orders: Pick<Orders, 'ensureRunning' | 'recheck'>,
): Promise<boolean> {
  const { merchantId, subjectId, intentId, subscriptionId, cycleNumber, state } = review;
  if (subjectId.startsWith('rf_')) {
    const refund = { merchantId, refundId: subjectId };
    // The sweep of open refunds omits those in REVIEW, so a stuck run is replaced here.
    if (!(await orders.ensureRunning('refund', refund))) await orders.recheck('refund', refund);
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
