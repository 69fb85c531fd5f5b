import { sql } from 'drizzle-orm';
import {
  boolean,
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
import type { Locale } from '../../domain/locales.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import { INTENT_KINDS, INTENT_STATUSES } from '../../domain/payment-intent.ts';
import type { IntentKind, IntentStatus } from '../../domain/payment-intent.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import { amountMinor, currency, instant, matchesEmail, merchantId, oneOf } from './_columns.ts';
import { subscriptionLinks } from './subscription-links.ts';
import { subscriptions } from './subscriptions.ts';

/** One payment with a fixed amount, which attempts try to collect. */
export const paymentIntents = pgTable(
  'payment_intent',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    kind: text('kind').$type<IntentKind>().notNull().default('cycle'),
    subscriptionId: text('subscription_id'),
    cycleNumber: integer('cycle_number'),
    /** The link that created a hosted payment; null if the merchant created it. */
    linkId: text('link_id'),
    customerId: text('customer_id').notNull(),
    /** The method of the latest attempt. A one-time or tokenised charge has a method before its first attempt. */
    paymentMethodId: text('payment_method_id'),
    amountMinor: amountMinor().notNull(),
    currency: currency().notNull(),
    presentmentCurrency: currency('presentment_currency').notNull(),
    status: text('status').$type<IntentStatus>().notNull(),
    /** Decline code of the latest declined attempt; null again after success. */
    errorCode: text('error_code'),
    refundedMinor: amountMinor('refunded_minor').notNull().default(0),
    receiptId: text('receipt_id'),
    description: text('description'),
    /** A merchant's note on a one-time charge or on a link to pay once. */
    comments: text('comments'),
    storeFrontId: text('store_front_id'),
    /** For a hosted payment. A cycle uses its subscription's URLs. */
    callbackUrl: text('callback_url'),
    cancelUrl: text('cancel_url'),
    paymentMethods: json('payment_methods').$type<PaymentMethodKind[]>(),
    phoneNumberRequired: boolean('phone_number_required').notNull().default(false),
    locale: text('locale').$type<Locale>(),
    /** If true, the payment method stays saved for the customer after a successful payment. */
    tokenise: boolean('tokenise').notNull().default(false),
    metadata: json('metadata').$type<Record<string, string>>(),
    customerDetails: json('customer_details').$type<CustomerDetails>().notNull(),
    normalEmail: text('normal_email'),
    /** Business time (a test clock's time, else real time), like `dueAt` and `succeededAt`. */
    createdAt: instant('created_at').notNull(),
    dueAt: instant('due_at'),
    succeededAt: instant('succeeded_at'),
    /** Real time until which the page of a hosted payment accepts a card; null for every other payment. */
    checkoutExpiresAt: instant('checkout_expires_at'),
    /** Real time at which the row was last changed, or taken by a sweep. */
    updatedAt: instant('updated_at')
      .notNull()
      .default(sql`now()`),
    /** Real time at which `verify --adopt` copied the row from the gateway's book; null for every other row. */
    adoptedAt: instant('adopted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.subscriptionId],
      foreignColumns: [subscriptions.merchantId, subscriptions.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.linkId],
      foreignColumns: [subscriptionLinks.merchantId, subscriptionLinks.id],
    }),
    check('payment_intent__status__ck', sql`${table.status} in (${oneOf(INTENT_STATUSES)})`),
    check('payment_intent__kind__ck', sql`${table.kind} in (${oneOf(INTENT_KINDS)})`),
    check(
      'payment_intent__refunded__ck',
      sql`${table.refundedMinor} between 0 and ${table.amountMinor}`,
    ),
    check('payment_intent__amount__ck', sql`${table.amountMinor} between 1 and 9007199254740991`),
    check(
      'payment_intent__normal_email__ck',
      matchesEmail(table.customerDetails, table.normalEmail),
    ),
    // A cycle has one intent, even if two transactions create one at once.
    uniqueIndex('payment_intent__subscription_cycle__uq')
      .on(table.merchantId, table.subscriptionId, table.cycleNumber)
      .where(sql`${table.cycleNumber} is not null`),
    // Lists read this index, newest first.
    index('payment_intent__created__idx').on(table.merchantId, table.createdAt, table.id),
    // Lists with a filter.
    index('payment_intent__subscription__idx')
      .on(table.merchantId, table.subscriptionId, table.createdAt, table.id)
      .where(sql`${table.subscriptionId} is not null`),
    index('payment_intent__receipt__idx')
      .on(table.merchantId, table.receiptId)
      .where(sql`${table.receiptId} is not null`),
    index('payment_intent__normal_email__idx')
      .on(table.merchantId, table.normalEmail)
      .where(sql`${table.normalEmail} is not null`),
    // The periodic sweep finds undecided payments outside the billing cycles. Omits hosted payments in CREATED, because
    // a hosted payment stays in CREATED if the payer never pays.
    index('payment_intent__open__idx')
      .on(table.updatedAt)
      .where(
        sql`${table.kind} <> 'cycle' and ${table.status} in ('CREATED', 'PENDING') and (${table.kind} <> 'hosted' or ${table.status} = 'PENDING')`,
      ),
    // Finds the uses of a link whose payment was not made in time.
    index('payment_intent__link__idx')
      .on(table.merchantId, table.linkId, table.checkoutExpiresAt)
      .where(sql`${table.linkId} is not null and ${table.status} in ('CREATED', 'FAILED')`),
    index('payment_intent__customer__idx').on(table.merchantId, table.customerId),
  ],
);
