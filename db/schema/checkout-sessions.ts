import { sql } from 'drizzle-orm';
import {
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId, oneOf } from './_columns.ts';
import { paymentIntents } from './payment-intents.ts';
import { setupMethods } from './setup-methods.ts';
import { subscriptions } from './subscriptions.ts';

/** The purpose of a hosted page: the payer subscribes, pays once, saves a payment method, or replaces one. */
export const CHECKOUT_PURPOSES = [
  'subscription',
  'payment',
  'setup_method',
  'update_method',
] as const;
export type CheckoutPurpose = (typeof CHECKOUT_PURPOSES)[number];

/**
 * One session on a hosted page. The bearer token of the page's URL is stored as SHA-256. The status of the
 * subscription, intent or setup method decides whether the session is open.
 */
export const checkoutSessions = pgTable(
  'checkout_session',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    tokenHash: bytes('token_hash').notNull(),
    purpose: text('purpose').$type<CheckoutPurpose>().notNull().default('subscription'),
    /** Exactly one of these three ids is set, according to `purpose`. */
    subscriptionId: text('subscription_id'),
    intentId: text('intent_id'),
    setupMethodId: text('setup_method_id'),
    /**
     * For the first checkout of a subscription: business time (the time of its test clock, else real time). For
     * every other purpose: real time.
     */
    expiresAt: instant('expires_at').notNull(),
    openedAt: instant('opened_at'),
    /** Number of card tries, declined ones included. Equals the session's number of rows in `checkout_try`. */
    tries: integer('tries').notNull().default(0),
    /** The gateways whose card pages were opened for the session, the first one first: `stripe:acct_…`. */
    gateways: text('gateways').array().notNull().default([]),
    /** Error code of the last failed try; null if no try failed. */
    lastErrorCode: text('last_error_code'),
    createdAt: instant('created_at').notNull(),
    /** Real time of the insert, for the retention sweep. */
    insertedAt: instant('inserted_at')
      .notNull()
      .default(sql`now()`),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    foreignKey({
      columns: [table.merchantId, table.subscriptionId],
      foreignColumns: [subscriptions.merchantId, subscriptions.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.intentId],
      foreignColumns: [paymentIntents.merchantId, paymentIntents.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.setupMethodId],
      foreignColumns: [setupMethods.merchantId, setupMethods.id],
    }),
    check('checkout_session__purpose__ck', sql`${table.purpose} in (${oneOf(CHECKOUT_PURPOSES)})`),
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
