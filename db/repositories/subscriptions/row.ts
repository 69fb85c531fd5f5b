import { sql } from 'drizzle-orm';
import { subscriptions } from '../../schema/subscriptions.ts';

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
