import { sql } from 'drizzle-orm';
import {
  check,
  foreignKey,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { CustomerDetails } from '../../domain/customer.ts';
import { INTENT_STATUSES } from '../../domain/payment-intent.ts';
import type { IntentStatus } from '../../domain/payment-intent.ts';
import { amountMinor, currency, instant, merchantId, oneOf } from './_columns.ts';
import { subscriptions } from './subscriptions.ts';

/**
 * One thing owed, with all its attempts: here, a billing cycle. Its amount never changes after it
 * was made. Rule: D-40. Writer: the API for the first cycle of a subscription without a trial,
 * otherwise activities.
 */
export const paymentIntents = pgTable(
  'payment_intent',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    subscriptionId: text('subscription_id'),
    cycleNumber: integer('cycle_number'),
    customerId: text('customer_id').notNull(),
    /** The method of the latest attempt. */
    paymentMethodId: text('payment_method_id'),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    presentmentCurrency: currency('presentment_currency').notNull(),
    status: text('status').$type<IntentStatus>().notNull(),
    /** Decline code of the latest declined attempt; null again after success. */
    errorCode: text('error_code'),
    receiptId: text('receipt_id'),
    metadata: json('metadata').$type<Record<string, string>>(),
    customerDetails: json('customer_details').$type<CustomerDetails>().notNull(),
    /** Business time, like every instant below. */
    createdAt: instant('created_at').notNull(),
    dueAt: instant('due_at'),
    succeededAt: instant('succeeded_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.subscriptionId],
      foreignColumns: [subscriptions.merchantId, subscriptions.id],
    }),
    check('payment_intent__status__ck', sql`${table.status} in (${oneOf(INTENT_STATUSES)})`),
    check('payment_intent__amount__ck', sql`${table.amountMinor} between 1 and 9007199254740991`),
    // One intent per cycle, whoever makes it first.
    uniqueIndex('payment_intent__subscription_cycle__uq')
      .on(table.merchantId, table.subscriptionId, table.cycleNumber)
      .where(sql`${table.cycleNumber} is not null`),
    index('payment_intent__customer__idx').on(table.merchantId, table.customerId),
  ],
);
