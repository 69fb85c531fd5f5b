import { sql } from 'drizzle-orm';
import { index, json, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { GatewayHint } from '../../domain/gateway-hint.ts';
import { instant, merchantId, realTime } from './_columns.ts';

/** An event from a gateway, committed before it gets its answer. All times are real. */
export const gatewayEvents = pgTable(
  'gateway_event',
  {
    merchantId: merchantId(),
    /** The account, such as `stripe:acct_…`. */
    gateway: text('gateway').notNull(),
    /** The gateway's id of the event, the same when the gateway sends the event again. */
    eventId: text('event_id').notNull(),
    type: text('type').notNull(),
    /** The gateway's id of the named object, else our key. Null for an ignored event. */
    subjectId: text('subject_id'),
    hint: json('hint').$type<GatewayHint>().notNull(),
    receivedAt: realTime('received_at'),
    /** When the event was handled, or when it was stored if nothing waited for it. Null: not handled yet. */
    handledAt: instant('handled_at'),
    /** When a sweep last took the event; null if none did. */
    sweptAt: instant('swept_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.gateway, table.eventId] }),
    // Finds the unhandled events of one object, and all unhandled events for the sweep.
    index('gateway_event__unhandled__idx')
      .on(table.merchantId, table.gateway, table.subjectId)
      .where(sql`${table.handledAt} is null`),
    // The periodic sweep finds rows past their retention by this index.
    index('gateway_event__received__idx').on(table.receivedAt),
  ],
);
