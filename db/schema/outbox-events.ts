import { sql } from 'drizzle-orm';
import { bigint, index, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/events.ts';
import { instant, merchantId } from './_columns.ts';

/**
 * One event, written in the transaction of the change that it reports. `body` is the exact text that is signed and
 * sent, the same on every delivery attempt.
 */
export const outboxEvents = pgTable(
  'outbox_event',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    streamId: text('stream_id').notNull(),
    sequence: bigint('sequence', { mode: 'number' }).notNull(),
    type: text('type').$type<EventType>().notNull(),
    body: text('body').notNull(),
    /** Business time: the time of the subscription's test clock, else real time. */
    occurredAt: instant('occurred_at').notNull(),
    insertedAt: instant('inserted_at')
      .notNull()
      .default(sql`now()`),
    /** Real time when the retention sweep shortened `body` to the intent's id and the status; null before. */
    bodyDeletedAt: instant('body_deleted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    uniqueIndex('outbox_event__sequence__uq').on(table.merchantId, table.streamId, table.sequence),
    // The periodic sweep finds rows past their retention by this index.
    index('outbox_event__body__idx')
      .on(table.insertedAt)
      .where(sql`${table.bodyDeletedAt} is null`),
  ],
);
