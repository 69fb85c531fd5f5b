import { boolean, index, integer, pgTable, primaryKey, text } from 'drizzle-orm/pg-core';
import type { EventType } from '../../domain/events.ts';
import { bytes, instant, merchantId } from './_columns.ts';
import { merchants } from './merchants.ts';

/**
 * A webhook endpoint: its URL, its event types and its signing secret, sealed with AES-256-GCM. A
 * deleted configuration keeps its row, with `deletedAt`, because deliveries refer to it.
 */
export const webhookConfigs = pgTable(
  'webhook_config',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    url: text('url').notNull(),
    sealedSigner: bytes('sealed_signer').notNull(),
    /**
     * The previous secret. `webhook-signature` also contains a signature with this secret until
     * `previousSignerUntil`.
     */
    sealedPreviousSigner: bytes('sealed_previous_signer'),
    previousSignerUntil: instant('previous_signer_until'),
    eventTypes: text('event_types').array().$type<EventType[]>().notNull(),
    isActive: boolean('is_active').notNull(),
    deactivatedReason: text('deactivated_reason'),
    /** Time of the first failure since the last success; null after a success. */
    failingSince: instant('failing_since'),
    /**
     * Number of failed attempts since the last success, except those that ended during a pause. This number,
     * `pausedUntil` and `failingSince` are the state of the circuit breaker.
     */
    consecutiveFailures: integer('consecutive_failures').notNull().default(0),
    /** No request is sent before this time, in real time. Null while the breaker is closed. */
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
