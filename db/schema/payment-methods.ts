import { sql } from 'drizzle-orm';
import {
  check,
  foreignKey,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { instant, merchantId, oneOf } from './_columns.ts';
import { customers } from './customers.ts';

/**
 * PENDING: redeemed from a token, its first use not successful. LIVE: can be charged again. DELETED: replaced, or
 * removed at the gateway; a charge that was ordered before may still be made.
 */
export const PAYMENT_METHOD_STATUSES = ['PENDING', 'LIVE', 'DELETED'] as const;
export type PaymentMethodStatus = (typeof PAYMENT_METHOD_STATUSES)[number];

/**
 * A payment method that the gateway stores for us. `gatewayMethodId` is the gateway's id of the method. We
 * store only the card details that the gateway returns: no number, no CVC.
 */
export const paymentMethods = pgTable(
  'payment_method',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    customerId: text('customer_id').notNull(),
    kind: text('kind').$type<'CARD'>().notNull(),
    gateway: text('gateway').notNull(),
    gatewayMethodId: text('gateway_method_id').notNull(),
    brand: text('brand').notNull(),
    country: text('country'),
    lastFourDigit: text('last_four_digit').notNull(),
    expiryMonth: integer('expiry_month').notNull(),
    expiryYear: integer('expiry_year').notNull(),
    status: text('status').$type<PaymentMethodStatus>().notNull(),
    /** When the payer entered the card, by the gateway's clock. Null for imports. */
    enteredAt: instant('entered_at'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.customerId],
      foreignColumns: [customers.merchantId, customers.id],
    }),
    // A token that is redeemed twice gives one row, and a gateway method belongs to one merchant.
    uniqueIndex('payment_method__gateway_method__uq').on(table.gateway, table.gatewayMethodId),
    check(
      'payment_method__status__ck',
      sql`${table.status} in (${oneOf(PAYMENT_METHOD_STATUSES)})`,
    ),
  ],
);
