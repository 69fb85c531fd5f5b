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

/** What a payer comes to a hosted page for. */
export const CHECKOUT_PURPOSES = [
  'subscription',
  'payment',
  'setup_method',
  'update_method',
] as const;
export type CheckoutPurpose = (typeof CHECKOUT_PURPOSES)[number];

/**
 * A payer's way in to a hosted page: the bearer token of the URL (kept as SHA-256) and what happened
 * on the page. Whether it is still open is the status of what it is for, never stored twice.
 * Writer: the API.
 */
export const checkoutSessions = pgTable(
  'checkout_session',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    tokenHash: bytes('token_hash').notNull(),
    purpose: text('purpose').$type<CheckoutPurpose>().notNull().default('subscription'),
    /** Of these three exactly one, by purpose. */
    subscriptionId: text('subscription_id'),
    intentId: text('intent_id'),
    setupMethodId: text('setup_method_id'),
    /** Business time. */
    expiresAt: instant('expires_at').notNull(),
    openedAt: instant('opened_at'),
    /** Tries with a card, refused ones included: how many rows `checkout_try` has. */
    tries: integer('tries').notNull().default(0),
    /** Why the last try did not go through; null when none failed. */
    lastErrorCode: text('last_error_code'),
    createdAt: instant('created_at').notNull(),
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
    index('checkout_session__intent__idx').on(table.merchantId, table.intentId),
  ],
);
