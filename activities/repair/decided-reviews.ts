import type { Orders } from '../../temporal/orders.ts';
import type { SubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';

/** A decided review of an attempt or refund; a voided attempt has the decision `not_charged`. */
export interface DecidedReview {
  merchantId: string;
  subjectId: string;
  intentId: string;
  subscriptionId: string | null;
  cycleNumber: number | null;
  /** The state of the attempt or the refund: REVIEW until its workflow has recorded the decision. */
  state: string;
}

/**
 * Makes the workflow record the decision, or starts the late-charge watch of an attempt that is recorded as not paid;
 * false if it already runs. A repeat is safe. Throws if Temporal is unreachable.
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
