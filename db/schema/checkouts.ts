import { sql } from 'drizzle-orm';
import {
  boolean,
  check,
  json,
  pgTable,
  primaryKey,
  text,
  index,
  integer,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { Locale } from '../../domain/locales.ts';
import type { CustomerDetails } from '../../domain/customer.ts';
import type { PaymentMethodKind } from '../../domain/payment-method.ts';
import { SETUP_METHOD_STATUSES } from '../../domain/setup-method.ts';
import {
  bytes,
  childOf,
  currency,
  instant,
  merchantId,
  areListed,
  realTime,
  texts,
} from './_columns.ts';
import { customers, paymentMethods } from './customers.ts';
import { paymentIntents } from './payments.ts';
import { subscriptions } from './subscriptions.ts';

/** A session that saves a payment method. CREATED counts as CANCELLED after `expiresAt`. */
export const setupMethods = pgTable(
  'setup_method',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    customerId: text('customer_id').notNull(),
    status: text('status', { enum: SETUP_METHOD_STATUSES }).notNull(),
    currency: currency().notNull(),
    paymentMethods: json('payment_methods').$type<PaymentMethodKind[]>().notNull(),
    paymentMethodId: text('payment_method_id'),
    storeFrontId: text('store_front_id'),
    billingDetails: json('billing_details').$type<CustomerDetails>().notNull(),
    callbackUrl: text('callback_url').notNull(),
    metadata: json('metadata').$type<Record<string, string>>(),
    phoneNumberRequired: boolean('phone_number_required').notNull(),
    locale: text('locale').$type<Locale>(),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
    completedAt: instant('completed_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.customerId, customers),
    childOf(table, table.paymentMethodId, paymentMethods),
    ...areListed(table.status),
  ],
);

/** The purpose of a hosted page: the payer subscribes, pays once, saves a payment method, or replaces one. */
export const CHECKOUT_PURPOSES = [
  'subscription',
  'payment',
  'setup_method',
  'update_method',
] as const;
export type CheckoutPurpose = (typeof CHECKOUT_PURPOSES)[number];

/** A session of a hosted page; it is open while its subscription, intent or setup allows. */
export const checkoutSessions = pgTable(
  'checkout_session',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    tokenHash: bytes('token_hash').notNull(),
    purpose: text('purpose', { enum: CHECKOUT_PURPOSES }).notNull().default('subscription'),
    /** Exactly one of these three ids is set, according to `purpose`. */
    subscriptionId: text('subscription_id'),
    intentId: text('intent_id'),
    setupMethodId: text('setup_method_id'),
    /** For a subscription's first checkout: business time. Else real time. */
    expiresAt: instant('expires_at').notNull(),
    openedAt: instant('opened_at'),
    /** Number of card tries, declined ones included. Equals the session's number of rows in `checkout_try`. */
    tries: integer('tries').notNull().default(0),
    /** The gateways whose card pages were opened for the session, the first one first: `stripe:acct_…`. */
    gateways: texts('gateways').notNull().default([]),
    /** Error code of the last failed try; null if no try failed. */
    lastErrorCode: text('last_error_code'),
    createdAt: instant('created_at').notNull(),
    /** Real time of the insert, for the retention sweep. */
    insertedAt: realTime('inserted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.subscriptionId, subscriptions),
    childOf(table, table.intentId, paymentIntents),
    childOf(table, table.setupMethodId, setupMethods),
    ...areListed(table.purpose),
    check(
      'checkout_session__subject__ck',
      sql`num_nonnulls(${table.subscriptionId}, ${table.intentId}, ${table.setupMethodId}) = 1`,
    ),
    uniqueIndex('checkout_session__token__uq').on(table.tokenHash),
    index('checkout_session__subscription__idx').on(table.merchantId, table.subscriptionId),
    // The periodic sweep finds rows past their retention by this index.
    index('checkout_session__inserted__idx').on(table.insertedAt),
    // `intentId` comes first, because the look-up of a page by its intent's id has no merchant id.
    index('checkout_session__intent__idx').on(table.intentId, table.merchantId),
  ],
);

/** One try with a card. The primary key makes a reload of the return page the same try. */
export const checkoutTries = pgTable(
  'checkout_try',
  {
    merchantId: merchantId(),
    sessionId: text('session_id').notNull(),
    /** SHA-256 of the one-time token, or of the decline code and the refusal's id. */
    key: bytes('key').notNull(),
    /** Error code of a failed try. Null if the try succeeded, and while its outcome is unknown. */
    errorCode: text('error_code'),
    /** Real time. */
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.sessionId, table.key] }),
    childOf(table, table.sessionId, checkoutSessions),
  ],
);
