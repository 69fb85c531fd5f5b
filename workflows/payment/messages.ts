import { defineSignal } from '@temporalio/workflow';
import type { CardToken, IntentRef, PaymentOutcome } from '../../domain/payment-intent.ts';

/** The registered type of the workflow; never changes. */
export const PAYMENT_WORKFLOW = 'payment';

export function paymentWorkflowId(intentId: string): string {
  return `payment/${intentId}`;
}

/** Ask now, not when the timer fires: a person decided it. Changes nothing by itself. */
export const poke = defineSignal('poke');

/** One run's argument, handed on by continue-as-new. Ids and a one-time token, nothing personal. */
export interface PaymentInput extends IntentRef {
  token: CardToken | null;
  /** How often the gateway was asked in vain. */
  lookups: number;
  /** The activity runs inside the workflow task first; absent in runs from before that. */
  isLocalFirst?: true;
}

/** Whoever found a run under way has to see whose order it carried out. */
export interface PaymentResult {
  paymentToken: string | null;
  outcome: Exclude<PaymentOutcome, { kind: 'pending' }>;
}
