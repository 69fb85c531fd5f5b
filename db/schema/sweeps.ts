import { bigint, pgTable, text } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/** `stalledStreams`: endpoint queues. `gatewayEvents`: stored and not handled. `failed`: could not be repaired. */
export const REPAIR_KINDS = [
  'neverStarted',
  'lost',
  'overdue',
  'behindTheirClock',
  'withdrawn',
  'openPayments',
  'openRefunds',
  'decidedReviews',
  'stalledStreams',
  'gatewayEvents',
  'declarations',
  'failed',
] as const;
export type RepairKind = (typeof REPAIR_KINDS)[number];

/** Repairs by the sweep, by kind, since the database was created. A healthy system has no row. */
export const sweepCounts = pgTable('sweep_count', {
  kind: text('kind').primaryKey(),
  repaired: bigint('repaired', { mode: 'number' }).notNull(),
  lastAt: instant('last_at').notNull(),
});
