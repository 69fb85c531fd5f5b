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

/**
 * The number of records that the sweep deleted after their retention, by kind, since the database was created. A
 * deletion is no repair, so `sweep_count` does not count it.
 */
export const retentionCounts = pgTable('retention_count', {
  kind: text('kind').primaryKey(),
  deleted: bigint('deleted', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});
