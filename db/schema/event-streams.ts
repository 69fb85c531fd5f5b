import { bigint, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { merchantId } from './_columns.ts';

/**
 * The event counter of a stream. A stream has the events of one subscription, of one intent or setup session
 * without a subscription, or of the changes of one payment method. A transaction that raises the counter locks
 * the row, so the sequence order is the commit order. Rule: D-52.
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
