import { bigint, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { merchantId } from './_columns.ts';

/**
 * The event counter of a stream. A stream is a subscription, or an intent or setup session without a
 * subscription. Raising the counter locks the row, so the sequence order is the commit order. Rule:
 * D-52.
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
