import { index, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import { bytes, childOf, instant, merchantId } from './_columns.ts';
import { customers } from './customers.ts';

/** A link to a payer's own page. It belongs to the first browser that opens it. Times are real. */
export const portalSessions = pgTable(
  'portal_session',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    customerId: text('customer_id').notNull(),
    /** SHA-256 of the link's token. */
    tokenHash: bytes('token_hash').notNull(),
    /** SHA-256 of the id in the browser's cookie; null until a browser opens the link. */
    browserHash: bytes('browser_hash'),
    returnUrl: text('return_url'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.customerId, customers),
    uniqueIndex('portal_session__token__uq').on(table.tokenHash),
    // The periodic sweep finds rows past their retention by this index.
    index('portal_session__expiry__idx').on(table.expiresAt),
  ],
);
