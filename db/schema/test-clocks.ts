import { sql } from 'drizzle-orm';
import { pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * A clock that stands still until it is advanced. `targetAt` is where it was last sent; it is there
 * once every subscription on it that is not ENDED has `clockReachedAt >= targetAt`. Rule: D-60.
 * Writer: the API.
 */
export const testClocks = pgTable(
  'test_clock',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    targetAt: instant('target_at').notNull(),
    /** When it was last sent somewhere, in real time. */
    sentAt: instant('sent_at')
      .notNull()
      .default(sql`now()`),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.id] })],
);
