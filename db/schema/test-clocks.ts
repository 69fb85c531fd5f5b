import { sql } from 'drizzle-orm';
import { pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * Its time changes only when the merchant advances it. The advance is complete when every subscription on the clock
 * is ENDED or has `clockReachedAt >= targetAt`.
 */
export const testClocks = pgTable(
  'test_clock',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    targetAt: instant('target_at').notNull(),
    /** Real time of the last advance. */
    sentAt: instant('sent_at')
      .notNull()
      .default(sql`now()`),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.id] })],
);
