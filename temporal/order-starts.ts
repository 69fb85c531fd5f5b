import type { PaymentOrder } from '../domain/payment-intent.ts';
import type { RefundRef } from '../domain/refund.ts';
import type { AttemptRef } from '../domain/review.ts';
import type { SetupOrder } from '../domain/setup-method.ts';
import {
  LATE_CHARGE_WORKFLOW,
  lateChargeWorkflowId,
  PAYMENT_WORKFLOW,
  paymentWorkflowId,
  REFUND_WORKFLOW,
  refundWorkflowId,
  SETUP_METHOD_WORKFLOW,
  setupMethodWorkflowId,
} from '../workflows/one-off-orders/messages.ts';
import type {
  LateChargeInput,
  PaymentInput,
  RefundInput,
  SetupMethodInput,
} from '../workflows/one-off-orders/messages.ts';

/** A workflow to start, or to join if it runs. */
export interface OrderStart {
  type: string;
  workflowId: string;
  merchantId: string;
  memo: Record<string, string>;
  input: PaymentInput | RefundInput | SetupMethodInput | LateChargeInput;
}

export function paymentStart({ merchantId, intentId, token }: PaymentOrder): OrderStart {
  return {
    type: PAYMENT_WORKFLOW,
    workflowId: paymentWorkflowId(intentId),
    merchantId,
    memo: { merchantId, intentId },
    input: { merchantId, intentId, token, lookups: 0, isLocalFirst: true },
  };
}

export function setupStart(order: SetupOrder): OrderStart {
  const { merchantId, setupMethodId, paymentToken, checkoutSessionId } = order;
  return {
    type: SETUP_METHOD_WORKFLOW,
    workflowId: setupMethodWorkflowId(setupMethodId),
    merchantId,
    memo: { merchantId, setupMethodId },
    input: {
      merchantId,
      setupMethodId,
      paymentToken,
      checkoutSessionId,
      lookups: 0,
      isLocalFirst: true,
    },
  };
}

export function refundStart({ merchantId, refundId }: RefundRef): OrderStart {
  return {
    type: REFUND_WORKFLOW,
    workflowId: refundWorkflowId(refundId),
    merchantId,
    memo: { merchantId, refundId },
    input: { merchantId, refundId, lookups: 0, isLocalFirst: true },
  };
}

export function lateChargeStart({ merchantId, attemptId }: AttemptRef): OrderStart {
  return {
    type: LATE_CHARGE_WORKFLOW,
    workflowId: lateChargeWorkflowId(attemptId),
    merchantId,
    memo: { merchantId, attemptId },
    input: { merchantId, attemptId, lookups: 0 },
  };
}
