import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/**
 * How often the sweeps had to repair something, by what was wrong, since the database was made. In a
 * healthy system there is no row. Writer: the activity `sweep`. Design §5.
 */
export const sweepCounts = pgTable('sweep_count', {
  kind: text('kind').primaryKey(),
  repaired: bigint('repaired', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});
