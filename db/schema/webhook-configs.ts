import { boolean, index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/events.ts';
import { bytes, instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * Where a merchant wants events, and with which secret they are signed (sealed with AES-256-GCM).
 * `deletedAt` keeps the row for the deliveries that point to it. Rules: D-53, D-55.
 * Writer: the API; deliveries keep the breaker and deactivate it (D-54).
 */
export const webhookConfigs = pgTable(
  'webhook_config',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    url: text('url').notNull(),
    sealedSigner: bytes('sealed_signer').notNull(),
    /** The secret before the last change, listed beside the new one until `previousSignerUntil`. */
    sealedPreviousSigner: bytes('sealed_previous_signer'),
    previousSignerUntil: instant('previous_signer_until'),
    eventTypes: text('event_types').array().$type<EventType[]>().notNull(),
    isActive: boolean('is_active').notNull(),
    deactivatedReason: text('deactivated_reason'),
    /** Start of the present run of failures; null after any success. */
    failingSince: instant('failing_since'),
    /** Failed attempts since the last success. With `pausedUntil` the endpoint's breaker. */
    consecutiveFailures: integer('consecutive_failures').notNull().default(0),
    /** No request before this instant, in real time; null while the breaker is closed. */
    pausedUntil: instant('paused_until'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    index('webhook_config__active__idx').on(table.merchantId, table.isActive),
  ],
);
