import { sql } from 'drizzle-orm';
import {
  check,
  index,
  json,
  pgTable,
  primaryKey,
  text,
  integer,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { CustomerDetails } from '../../domain/customer.ts';
import { bytes, childOf, instant, matchesEmail, merchantId, areListed } from './_columns.ts';
import { merchants } from './merchants.ts';

/** A payer, with the details given by the merchant or by the payer on a hosted page. */
export const customers = pgTable(
  'customer',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    details: json('details').$type<CustomerDetails>().notNull(),
    normalEmail: text('normal_email'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    check('customer__normal_email__ck', matchesEmail(table.details, table.normalEmail)),
    // Lists read this index, newest first.
    index('customer__created__idx').on(table.merchantId, table.createdAt, table.id),
    // The list with the filter by e-mail.
    index('customer__normal_email__idx')
      .on(table.merchantId, table.normalEmail)
      .where(sql`${table.normalEmail} is not null`),
  ],
);

/**
 * PENDING: redeemed from a token, its first use not successful. LIVE: can be charged again. DELETED: replaced, or
 * removed at the gateway; a charge that was ordered before may still be made.
 */
export const PAYMENT_METHOD_STATUSES = ['PENDING', 'LIVE', 'DELETED'] as const;
export type PaymentMethodStatus = (typeof PAYMENT_METHOD_STATUSES)[number];

/** A method stored at the gateway, with only the card details it returns: no number, no CVC. */
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
    status: text('status', { enum: PAYMENT_METHOD_STATUSES }).notNull(),
    /** When the payer entered the card, by the gateway's clock. Null for imports. */
    enteredAt: instant('entered_at'),
    /** SHA-256 of the card's one-time token, as in `checkout_try`. Null for imports. */
    tokenHash: bytes('token_hash'),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.customerId, customers),
    // A token that is redeemed twice gives one row, and a gateway method belongs to one merchant.
    uniqueIndex('payment_method__gateway_method__uq').on(table.gateway, table.gatewayMethodId),
    // The list of a customer's methods.
    index('payment_method__customer__idx').on(table.merchantId, table.customerId),
    ...areListed(table.status),
  ],
);
