import {
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  text,
  bigint,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { DEACTIVATION_REASONS, SEND_ERRORS } from '../../domain/delivery-schedule.ts';
import type { EventType } from '../../domain/events.ts';
import { bytes, childOf, instant, merchantId, areListed, realTime, texts } from './_columns.ts';
import { merchants } from './merchants.ts';
import { sql } from 'drizzle-orm';

/** A webhook endpoint. A deleted one keeps its row, because deliveries refer to it. */
export const webhookConfigs = pgTable(
  'webhook_config',
  {
    merchantId: merchantId().references(() => merchants.id),
    id: text('id').notNull(),
    url: text('url').notNull(),
    sealedSigner: bytes('sealed_signer').notNull(),
    /** Also signs, in `webhook-signature`, until `previousSignerUntil`. */
    sealedPreviousSigner: bytes('sealed_previous_signer'),
    previousSignerUntil: instant('previous_signer_until'),
    eventTypes: texts('event_types').$type<EventType[]>().notNull(),
    isActive: boolean('is_active').notNull(),
    deactivatedReason: text('deactivated_reason', { enum: DEACTIVATION_REASONS }),
    /** Time of the first failure since the last success; null after a success. */
    failingSince: instant('failing_since'),
    /** Failures since the last success, without those of a pause: a part of the circuit breaker. */
    consecutiveFailures: integer('consecutive_failures').notNull().default(0),
    /** No request is sent before this time, in real time. Null while the breaker is closed. */
    pausedUntil: instant('paused_until'),
    /** Number of `webhook.failing` events since `failingSince`. */
    warnings: integer('warnings').notNull().default(0),
    /** Since when events may have been stored without a delivery, because the configuration was inactive. */
    missedSince: instant('missed_since'),
    createdAt: instant('created_at').notNull(),
    updatedAt: instant('updated_at').notNull(),
    deletedAt: instant('deleted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    index('webhook_config__active__idx').on(table.merchantId, table.isActive),
    ...areListed(table.deactivatedReason),
  ],
);

/** The event counter of a stream. Its lock makes the sequence order the commit order. */
export const eventStreams = pgTable(
  'event_stream',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    lastSequence: bigint('last_sequence', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.id] })],
);

/** One event, in the transaction of its change. Every delivery attempt signs and sends `body`. */
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
    insertedAt: realTime('inserted_at'),
    /** Real time when the retention sweep shortened `body` to the intent's id and the status; null before. */
    bodyDeletedAt: instant('body_deleted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    uniqueIndex('outbox_event__sequence__uq').on(table.merchantId, table.streamId, table.sequence),
    // The events of a merchant by age: for the retention sweep and for a recovery.
    index('outbox_event__body__idx')
      .on(table.merchantId, table.insertedAt)
      .where(sql`${table.bodyDeletedAt} is null`),
  ],
);

/**
 * The events that one transaction stored in one stream, in the order of the feed. Narrow, because numbering an entry
 * writes its row again.
 */
export const feedEntries = pgTable(
  'feed_entry',
  {
    merchantId: merchantId(),
    streamId: text('stream_id').notNull(),
    firstSequence: bigint('first_sequence', { mode: 'number' }).notNull(),
    events: integer('events').notNull(),
    /** Position of the first event; the others follow it. Null until the entry is numbered, after its commit. */
    position: bigint('position', { mode: 'number' }),
    /** Random number of the statement that numbered the entry. A restored database numbers again with another one. */
    mark: bigint('mark', { mode: 'number' }),
  },
  (table) => [
    index('feed_entry__unnumbered__idx')
      .on(table.merchantId, table.streamId, table.firstSequence)
      .where(sql`${table.position} is null`),
    uniqueIndex('feed_entry__position__uq')
      .on(table.merchantId, table.position)
      .where(sql`${table.position} is not null`),
    index('feed_entry__stream__idx')
      .on(table.merchantId, table.streamId, table.position)
      .where(sql`${table.position} is not null`),
  ],
);

/** The position counter of a merchant. Its lock makes the order of positions the order in which they are committed. */
export const eventFeeds = pgTable('event_feed', {
  merchantId: merchantId().primaryKey(),
  lastPosition: bigint('last_position', { mode: 'number' }).notNull(),
  /** The last position whose event has lost its body to the retention sweep. */
  expiredPosition: bigint('expired_position', { mode: 'number' }).notNull().default(0),
});

/** FAILED: every attempt of the schedule failed. DROPPED: the configuration was deleted or deactivated. */
export const DELIVERY_STATES = ['PENDING', 'DELIVERED', 'FAILED', 'DROPPED'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The delivery of one event to one endpoint, so that no endpoint delays another. */
export const webhookDeliveries = pgTable(
  'webhook_delivery',
  {
    merchantId: merchantId(),
    eventId: text('event_id').notNull(),
    configId: text('config_id').notNull(),
    streamId: text('stream_id').notNull(),
    sequence: bigint('sequence', { mode: 'number' }).notNull(),
    state: text('state', { enum: DELIVERY_STATES }).notNull(),
    attempts: integer('attempts').notNull().default(0),
    /** True if the merchant asked to send the event again. The schedule then counts from `resentAfter` attempts. */
    isResent: boolean('is_resent').notNull().default(false),
    resentAfter: integer('resent_after').notNull().default(0),
    /** The latest recovery that asked for it. */
    recoveryId: text('recovery_id'),
    /** Real time, like every time in this table. */
    nextAttemptAt: realTime('next_attempt_at'),
    lastHttpStatus: integer('last_http_status'),
    lastError: text('last_error'),
    /** Of the attempt that delivered it, which has no row in `webhook_attempt`. */
    durationMs: integer('duration_ms'),
    answer: text('answer'),
    settledAt: instant('settled_at'),
    /** End of the claim, by the database's clock. A release must name the same value. */
    claimedUntil: instant('claimed_until'),
    insertedAt: realTime('inserted_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.eventId, table.configId] }),
    childOf(table, table.eventId, outboxEvents),
    childOf(table, table.configId, webhookConfigs),
    ...areListed(table.state),
    // The pending deliveries of one stream to one endpoint, in sequence order.
    index('webhook_delivery__pending_stream__idx')
      .on(table.merchantId, table.streamId, table.configId, table.sequence)
      .where(sql`${table.state} = 'PENDING'`),
    // The queue of one endpoint, ordered by due time. The sweep reads this index for every endpoint.
    index('webhook_delivery__pending_endpoint__idx')
      .on(table.merchantId, table.configId, table.isResent, table.nextAttemptAt)
      .where(sql`${table.state} = 'PENDING'`),
    // The log of one endpoint, together with the index of `webhook_attempt`.
    index('webhook_delivery__delivered__idx')
      .on(table.merchantId, table.configId, table.settledAt)
      .where(sql`${table.state} = 'DELIVERED'`),
    index('webhook_delivery__missed__idx')
      .on(table.merchantId, table.configId)
      .where(sql`${table.state} in ('FAILED', 'DROPPED')`),
    index('webhook_delivery__recovery__idx')
      .on(table.merchantId, table.recoveryId)
      .where(sql`${table.recoveryId} is not null`),
  ],
);

/**
 * An attempt that failed, or one that delivered an event that was sent again since. The delivery's own row tells of the
 * attempt that delivered it, so that most events have no row here.
 */
export const webhookAttempts = pgTable(
  'webhook_attempt',
  {
    merchantId: merchantId(),
    eventId: text('event_id').notNull(),
    configId: text('config_id').notNull(),
    /** Number of the attempt, from 1. */
    attempt: integer('attempt').notNull(),
    isManual: boolean('is_manual').notNull(),
    /** Real time of its end. */
    at: instant('at').notNull(),
    httpStatus: integer('http_status'),
    error: text('error', { enum: SEND_ERRORS }),
    durationMs: integer('duration_ms').notNull(),
    /** The beginning of the answer's body. */
    answer: text('answer'),
    /** When the next attempt was to be made; null after the last one. */
    nextAttemptAt: instant('next_attempt_at'),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.eventId, table.configId, table.attempt] }),
    index('webhook_attempt__endpoint__idx').on(table.merchantId, table.configId, table.at),
  ],
);

/** One request to send again what an endpoint missed. Its progress is the state of its deliveries. */
export const webhookRecoveries = pgTable(
  'webhook_recovery',
  {
    merchantId: merchantId(),
    id: text('id').notNull(),
    configId: text('config_id').notNull(),
    /** Number of events to send. */
    events: integer('events').notNull(),
    createdAt: instant('created_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.id] }),
    childOf(table, table.configId, webhookConfigs),
  ],
);
