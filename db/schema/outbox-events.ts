import { sql } from 'drizzle-orm';
import { bigint, pgTable, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/events.ts';
import { instant, merchantId } from './_columns.ts';

/**
 * Something that happened, written in the transaction that made it happen. `body` is the exact text
 * that is signed and sent, every time. Rules: D-51, D-52. Writer: whoever commits the cause.
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
    /** Business time. */
    occurredAt: instant('occurred_at').notNull(),
    insertedAt: instant('inserted_at')
      .notNull()
      .default(sql`now()`),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    uniqueIndex('outbox_event__sequence__uq').on(table.merchantId, table.streamId, table.sequence),
  ],
);
