import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/**
 * The number of repairs by the periodic sweep, by kind of fault, since the database was created. A healthy system
 * has no row.
 */
export const sweepCounts = pgTable('sweep_count', {
  kind: text('kind').primaryKey(),
  repaired: bigint('repaired', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});
