import type { PaymentOrder, PaymentOutcome } from './payment-intent.ts';
import type { RefundOutcome, RefundRef } from './refund.ts';
import type { AttemptRef, LateChargeOutcome } from './review.ts';
import type { SetupOrder, SetupOutcome } from './setup-method.ts';

interface OrderTypes {
  payment: { order: PaymentOrder; outcome: PaymentOutcome };
  refund: { order: RefundRef; outcome: RefundOutcome };
  setupMethod: { order: SetupOrder; outcome: SetupOutcome };
  lateCharge: { order: AttemptRef; outcome: LateChargeOutcome };
}

/** The kinds of orders outside the billing cycles, which are also the types of their workflows. */
export type OrderKind = keyof OrderTypes;

export type Order<Kind extends OrderKind> = OrderTypes[Kind]['order'];

export type OrderOutcome<Kind extends OrderKind> = OrderTypes[Kind]['outcome'];

/** One step of an order: a request that sends it, or a look-up of its outcome. */
export type OrderStep<Kind extends OrderKind> = Order<Kind> & {
  /** Real time. */
  nowAt: number;
  /** Number of earlier steps that found no outcome. Default: 0. */
  lookups?: number;
};

export function subjectOf(order: Order<OrderKind>): string {
  if ('intentId' in order) return order.intentId;
  if ('refundId' in order) return order.refundId;
  return 'attemptId' in order ? order.attemptId : order.setupMethodId;
}

export function tokenOf(order: Order<OrderKind>): string | null {
  return 'token' in order ? (order.token?.paymentToken ?? null) : null;
}
