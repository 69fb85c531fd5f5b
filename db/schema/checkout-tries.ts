import { foreignKey, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { bytes, instant, merchantId } from './_columns.ts';
import { checkoutSessions } from './checkout-sessions.ts';

/**
 * One try with a card on a hosted page. If a payer reloads the return page, the primary key prevents a second
 * try.
 */
export const checkoutTries = pgTable(
  'checkout_try',
  {
    merchantId: merchantId(),
    sessionId: text('session_id').notNull(),
    /**
     * SHA-256 of the one-time token. If the gateway refused the card and returned no token: SHA-256 of the decline
     * code together with the gateway's id of this refusal.
     */
    key: bytes('key').notNull(),
    /** Error code of a failed try. Null if the try succeeded, and while its outcome is unknown. */
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
