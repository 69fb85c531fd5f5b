import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/**
 * The number of records that the sweep deleted after their retention, by kind, since the database was created. A
 * deletion is no repair, so `sweep_count` does not count it.
 */
export const retentionCounts = pgTable('retention_count', {
  kind: text('kind').primaryKey(),
  deleted: bigint('deleted', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});
