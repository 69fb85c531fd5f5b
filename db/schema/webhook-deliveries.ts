import { sql } from 'drizzle-orm';
import {
  bigint,
  check,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core';
import { instant, merchantId, oneOf } from './_columns.ts';
import { outboxEvents } from './outbox-events.ts';
import { webhookConfigs } from './webhook-configs.ts';

/** FAILED: every attempt of the schedule failed. DROPPED: the configuration was deleted or deactivated. */
export const DELIVERY_STATES = ['PENDING', 'DELIVERED', 'FAILED', 'DROPPED'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * The delivery of one event to one endpoint, inserted in the transaction of the event. Each endpoint has its
 * own rows, so an endpoint that is down delays no other endpoint.
 */
export const webhookDeliveries = pgTable(
  'webhook_delivery',
  {
    merchantId: merchantId(),
    eventId: text('event_id').notNull(),
    configId: text('config_id').notNull(),
    streamId: text('stream_id').notNull(),
    sequence: bigint('sequence', { mode: 'number' }).notNull(),
    state: text('state').$type<DeliveryState>().notNull(),
    attempts: integer('attempts').notNull().default(0),
    /** Real time, like every time in this table. */
    nextAttemptAt: instant('next_attempt_at')
      .notNull()
      .default(sql`now()`),
    lastHttpStatus: integer('last_http_status'),
    lastError: text('last_error'),
    settledAt: instant('settled_at'),
    /**
     * End of the claim, by the database's clock: until then one process may send the delivery. Null without a
     * claim. The value also identifies the claim: a release must name the same value.
     */
    claimedUntil: instant('claimed_until'),
    insertedAt: instant('inserted_at')
      .notNull()
      .default(sql`now()`),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.eventId, table.configId] }),
    foreignKey({
      columns: [table.merchantId, table.eventId],
      foreignColumns: [outboxEvents.merchantId, outboxEvents.id],
    }),
    foreignKey({
      columns: [table.merchantId, table.configId],
      foreignColumns: [webhookConfigs.merchantId, webhookConfigs.id],
    }),
    check('webhook_delivery__state__ck', sql`${table.state} in (${oneOf(DELIVERY_STATES)})`),
    // The pending deliveries of one stream to one endpoint, in sequence order.
    index('webhook_delivery__pending_stream__idx')
      .on(table.merchantId, table.streamId, table.configId, table.sequence)
      .where(sql`${table.state} = 'PENDING'`),
    // The queue of one endpoint, ordered by due time. The sweep reads this index for every endpoint.
    index('webhook_delivery__pending_endpoint__idx')
      .on(table.merchantId, table.configId, table.nextAttemptAt)
      .where(sql`${table.state} = 'PENDING'`),
  ],
);
