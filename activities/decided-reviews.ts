import type { PaymentResumption } from '../temporal/payment-workflows.ts';
import type { SubscriptionWorkflows } from '../temporal/subscription-workflows.ts';

/** A person's decision on an attempt or a refund in REVIEW. */
export interface DecidedReview {
  merchantId: string;
  /** The id of the attempt or the refund. */
  subjectId: string;
  intentId: string;
  subscriptionId: string | null;
  cycleNumber: number | null;
  /** The present state of the attempt or the refund: REVIEW until the decision is booked. */
  state: string;
}

/**
 * Has the workflow of the attempt or the refund book the decision. For an attempt that is booked as *not
 * paid*, starts the watch for a late charge. False: there was nothing to do. Repeating it is safe. Throws
 * when Temporal is out of reach; the sweep then does it later.
 */
export async function followUp(
  review: DecidedReview,
  subscriptions: Pick<SubscriptionWorkflows, 'recheck'>,
  payments: Pick<PaymentResumption, 'wakePayment' | 'wakeRefund' | 'watchLateCharge'>,
): Promise<boolean> {
  const { merchantId, subjectId, intentId, subscriptionId, cycleNumber, state } = review;
  if (subjectId.startsWith('rf_')) {
    await payments.wakeRefund({ merchantId, refundId: subjectId });
    return true;
  }
  if (state !== 'REVIEW') return payments.watchLateCharge({ merchantId, attemptId: subjectId });
  if (subscriptionId !== null && cycleNumber !== null) {
    await subscriptions.recheck({ merchantId, subscriptionId });
  } else {
    await payments.wakePayment({ merchantId, intentId });
  }
  return true;
}
