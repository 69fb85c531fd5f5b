import { bigint, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import { merchantId } from './_columns.ts';

/**
 * The event counter of a stream: of a subscription, of an intent or setup session without one, or of a payment
 * method. Raising it locks the row, so the sequence order is the commit order.
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
