import type { IntentRef } from '../domain/payment-intent.ts';
import type { RefundRef } from '../domain/refund.ts';
import type { AttemptRef } from '../domain/review.ts';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

/** What a person decided, and what it belongs to. */
export interface DecidedReview {
  merchantId: string;
  /** The attempt or the refund. */
  subjectId: string;
  intentId: string;
  subscriptionId: string | null;
  cycleNumber: number | null;
  /** Its state now: REVIEW until the decision is booked. */
  state: string;
}

/** Those who book a decision, or go on after it. Each throws when Temporal is out of reach. */
export interface SubscriptionBooker {
  recheck(ref: SubscriptionRef): Promise<void>;
}
export interface PaymentBooker {
  wakePayment(ref: IntentRef): Promise<void>;
  wakeRefund(ref: RefundRef): Promise<void>;
  /** False when somebody looks already. */
  watchLateCharge(ref: AttemptRef): Promise<boolean>;
}

/**
 * Has a decision booked by the workflow that it belongs to, on its normal path; of one that is booked
 * and says *not paid*, has the gateway watched. False when nothing was to be done. Doing it again is
 * safe. Throws when Temporal is out of reach: the sweep does it later.
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
