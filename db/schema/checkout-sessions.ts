import {
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId } from './_columns.ts';
import { subscriptions } from './subscriptions.ts';

/**
 * A payer's way in to a hosted page: the bearer token of the URL (kept as SHA-256) and what happened
 * on the page. Whether it is still open is the subscription's own status, never stored twice.
 * Writer: the API.
 */
export const checkoutSessions = pgTable(
  'checkout_session',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    tokenHash: bytes('token_hash').notNull(),
    subscriptionId: text('subscription_id').notNull(),
    /** Business time. */
    expiresAt: instant('expires_at').notNull(),
    openedAt: instant('opened_at'),
    /** Tries with a card, refused ones included. */
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
    uniqueIndex('checkout_session__token__uq').on(table.tokenHash),
    index('checkout_session__subscription__idx').on(table.merchantId, table.subscriptionId),
  ],
);
