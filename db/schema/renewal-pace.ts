import { sql } from 'drizzle-orm';
import { boolean, check, pgTable, real } from 'drizzle-orm/pg-core';
import { instant } from './_columns.ts';

/** What the workers have learned of how many renewals one of them can charge a second. One row, or none yet. */
export const renewalPace = pgTable(
  'renewal_pace',
  {
    isOnly: boolean('is_only').primaryKey().default(true),
    perSecond: real('per_second').notNull(),
    learnedAt: instant('learned_at').notNull(),
  },
  (table) => [check('renewal_pace_is_one_row', sql`${table.isOnly}`)],
);
