import { defineSignal } from '@temporalio/workflow';
import type { CardToken, IntentRef, PaymentOutcome } from '../../domain/payment-intent.ts';
import type { RefundOutcome, RefundRef } from '../../domain/refund.ts';
import type { AttemptRef, LateChargeOutcome } from '../../domain/review.ts';
import type { SetupOrder, SetupOutcome } from '../../domain/setup-method.ts';

/** The registered types of the workflows, which never change. */
export const PAYMENT_WORKFLOW = 'payment';
export const REFUND_WORKFLOW = 'refund';
export const SETUP_METHOD_WORKFLOW = 'setupMethod';
export const LATE_CHARGE_WORKFLOW = 'lateCharge';

export function paymentWorkflowId(intentId: string): string {
  return `payment/${intentId}`;
}

export function refundWorkflowId(refundId: string): string {
  return `refund/${refundId}`;
}

export function setupMethodWorkflowId(setupMethodId: string): string {
  return `setup-method/${setupMethodId}`;
}

export function lateChargeWorkflowId(attemptId: string): string {
  return `late-charge/${attemptId}`;
}

/**
 * The recheck, which ends the workflow's sleep. Sent by operators, after a decision of manual review about the
 * attempt or the refund, after an event of the gateway, and when the gateway answers again after an outage.
 */
export const recheck = defineSignal('recheck');

/** Part of the argument of every run. Continue-as-new passes the count to the next run. */
interface Poll {
  /** Number of earlier requests to the gateway that found no outcome. */
  lookups: number;
}

/** The common part of the arguments, with ids and a one-time token, but no personal data. */
interface Order extends Poll {
  isLocalFirst?: true;
}

export interface PaymentInput extends IntentRef, Order {
  token: CardToken | null;
}

export interface RefundInput extends RefundRef, Order {}

export interface SetupMethodInput extends SetupOrder, Order {}

export interface LateChargeInput extends AttemptRef, Poll {}

/**
 * The result of a run. A caller that joined a running workflow compares `paymentToken` with the token of its own
 * order. The run executed the caller's order only if the two are equal.
 */
export interface PaymentResult {
  paymentToken: string | null;
  outcome: Exclude<PaymentOutcome, { kind: 'pending' }>;
}

export interface RefundResult {
  outcome: Exclude<RefundOutcome, { kind: 'pending' }>;
}

/** The result of a run. A caller uses `paymentToken` as in {@link PaymentResult}. */
export interface SetupMethodResult {
  paymentToken: string;
  outcome: Exclude<SetupOutcome, { kind: 'pending' }>;
}

export interface LateChargeResult {
  outcome: Exclude<LateChargeOutcome, { kind: 'pending' }>;
}
