import { defineSignal } from '@temporalio/workflow';
import type { Order, OrderKind, OrderOutcome } from '../../domain/order.ts';

const FOLDERS: Readonly<Record<OrderKind, string>> = {
  payment: 'payment',
  refund: 'refund',
  setupMethod: 'setup-method',
  lateCharge: 'late-charge',
};

/** Returns the id of an order's workflow. `id`: its payment intent, refund, setup session or attempt. */
export function orderWorkflowId(kind: OrderKind, id: string): string {
  return `${FOLDERS[kind]}/${id}`;
}

/** Ends the workflow's sleep. Sent by operators, after a decision of manual review, and after an event of the gateway. */
export const recheck = defineSignal('recheck');

/** The argument of a run, with ids and a one-time token, but no personal data. */
export interface OrderInput<Kind extends OrderKind> {
  order: Order<Kind>;
  /** Number of earlier requests to the gateway that found no outcome. */
  lookups: number;
}

/** The result of a run. It executed a caller's order only if `paymentToken` is the token of that order. */
export interface OrderResult<Kind extends OrderKind> {
  paymentToken: string | null;
  outcome: Exclude<OrderOutcome<Kind>, { kind: 'pending' }>;
}
