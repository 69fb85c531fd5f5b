import { sql } from 'drizzle-orm';
import { wakeAt } from '../../../domain/subscription/decide.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import { subscriptions } from '../../schema/subscriptions.ts';

/** Returns the column `state`, and the columns that repeat parts of `state` for queries. */
export function rowOf(state: SubscriptionState) {
  return {
    status: state.status,
    version: state.version,
    state,
    amountMinor: state.terms.amountMinor,
    currency: state.terms.currency,
    cycleCount: state.terms.cycleCount,
    cyclesCharged: state.cyclesCharged,
    wakeAt: wakeAt(state),
    // A run that records a state is not held.
    heldAt: null,
  };
}

export const ORDER = {
  merchantId: subscriptions.merchantId,
  subscriptionId: subscriptions.id,
  customerId: subscriptions.customerId,
  customerDetails: subscriptions.customerDetails,
  presentmentCurrency: subscriptions.presentmentCurrency,
  receiptId: subscriptions.receiptId,
  metadata: subscriptions.metadata,
};

type Row = typeof subscriptions.$inferSelect;
export type Order = Pick<Row, Exclude<keyof typeof ORDER, 'subscriptionId'>> & {
  subscriptionId: string;
};

/**
 * SQL expression: true if the joined subscription has an `upfrontAmount` for its first cycle. False without a
 * subscription.
 */
export const hasUpfrontAmount = sql<boolean>`${subscriptions.state}->'terms'->>'upfrontAmountMinor' is not null`;
