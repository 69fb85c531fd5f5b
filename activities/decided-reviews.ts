import type { IntentRef } from '../domain/payment-intent.ts';
import type { RefundRef } from '../domain/refund.ts';
import type { AttemptRef } from '../domain/review.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

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

/** Books decisions on a subscription's attempts. Throws when Temporal is out of reach. */
export interface SubscriptionBooker {
  recheck(ref: SubscriptionRef): Promise<void>;
}

/** Books decisions on other attempts and on refunds. Throws when Temporal is out of reach. */
export interface PaymentBooker {
  wakePayment(ref: IntentRef): Promise<void>;
  wakeRefund(ref: RefundRef): Promise<void>;
  /** False when a watch for a late charge runs already. */
  watchLateCharge(ref: AttemptRef): Promise<boolean>;
}

/**
 * Has the workflow of the attempt or the refund book the decision. For an attempt that is booked as *not
 * paid*, starts the watch for a late charge. False: there was nothing to do. Repeating it is safe. Throws
 * when Temporal is out of reach; the sweep then does it later.
 */
export async function followUp(
  review: DecidedReview,
  subscriptions: SubscriptionBooker,
  payments: PaymentBooker,
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
