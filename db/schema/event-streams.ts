import { bigint, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { merchantId } from './_columns.ts';

/**
 * The counter of a stream of events: a subscription, or an intent or setup session outside one. The
 * row lock taken by raising it makes sequence order the order of commits. Rule: D-52.
 */
export const eventStreams = pgTable(
  'event_stream',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    lastSequence: bigint('last_sequence', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.id] })],
);
