import { foreignKey, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId } from './_columns.ts';
import { checkoutSessions } from './checkout-sessions.ts';

/**
 * One try with a card on a hosted page. The primary key is what counts a try once, however often its
 * return address is loaded. Writer: the API.
 */
export const checkoutTries = pgTable(
  'checkout_try',
  {
    merchantId: merchantId(),
    sessionId: text('session_id').notNull(),
    /** SHA-256 of the one-time token, or of what the tokeniser sent instead of one. */
    key: bytes('key').notNull(),
    /** Why it did not go through; null while nobody knows, and when it did. */
    errorCode: text('error_code'),
    /** Real time. */
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.sessionId, table.key] }),
    foreignKey({
      columns: [table.merchantId, table.sessionId],
      foreignColumns: [checkoutSessions.merchantId, checkoutSessions.id],
    }),
  ],
);
