import { defineSignal } from '@temporalio/workflow';
import type { CardToken, IntentRef, PaymentOutcome } from '../../domain/payment-intent.ts';

/** The registered type of the workflow; never changes. */
export const PAYMENT_WORKFLOW = 'payment';

export function paymentWorkflowId(intentId: string): string {
  return `payment/${intentId}`;
}

/** Does the next step now, before the timer fires, because a person settled the attempt or the refund. */
export const poke = defineSignal('poke');

/** The argument of a run: ids and a one-time token, no personal data. Continue-as-new passes it on. */
export interface PaymentInput extends IntentRef {
  token: CardToken | null;
  /** Number of earlier requests to the gateway that found no outcome. */
  lookups: number;
  /** The activity runs inside the workflow task first. Absent in runs from before local activities. */
  isLocalFirst?: true;
}

/** A caller that joined a running workflow compares the token with its own: is it the same order? */
export interface PaymentResult {
  paymentToken: string | null;
  outcome: Exclude<PaymentOutcome, { kind: 'pending' }>;
}
