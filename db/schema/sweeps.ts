import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/** Repairs by the sweep, by kind, since the database was created. A healthy system has no row. */
export const sweepCounts = pgTable('sweep_count', {
  kind: text('kind').primaryKey(),
  repaired: bigint('repaired', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});

/** Records deleted after their retention, by kind. A deletion is no repair. */
export const retentionCounts = pgTable('retention_count', {
  kind: text('kind').primaryKey(),
  deleted: bigint('deleted', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});
