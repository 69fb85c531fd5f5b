import { createHash, randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { EventEnvelope, EventType, StreamRef } from '../../../domain/events.ts';
import { newId } from '../../../domain/ids.ts';
import type { RandomBytes } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { timestamp } from '../records.ts';

export interface EventToStore {
  type: EventType;
  /** Business time: the time of the subscription's test clock, else real time. */
  occurredAt: number;
  /** Returns the payload. Called once: every delivery attempt sends the stored text. */
  body: (envelope: EventEnvelope) => Record<string, unknown>;
}

/** The charge that causes an event: a key that a restored database gives again, and the due date of its cycle. */
export interface EventCause {
  key: string;
  dueAt: number;
}

/** Placeholder in an event's text, which the statement replaces by the sequence number. */
const SEQUENCE = String(Number.MAX_SAFE_INTEGER);

/**
 * Stores events of one stream in the caller's transaction, with a pending delivery for every active configuration, but
 * not for the one that the stream is about. The counter's row stays locked, so the sequence order is the commit order. A repeat would store them again. With a
 * `cause`, ids are the same after a restore; it must not cause two events of one type.
 */
export async function appendEvents(
  tx: Db,
  { merchantId, streamId }: StreamRef,
  events: readonly EventToStore[],
  cause?: EventCause,
): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ type, occurredAt, body }, index) => {
    const eventId = cause
      ? newId('evt', cause.dueAt, hashOf(`${streamId} ${cause.key} ${type}`))
      : newId('evt', Date.now(), randomBytes);
    const text = JSON.stringify(body({ eventId, sequence: Number(SEQUENCE) }));
    return sql`(${index}::int, ${eventId}, ${type}, ${text}, ${timestamp(occurredAt)})`;
  });
  await tx.execute(sql`
    with counter as (
      insert into event_stream (merchant_id, id, last_sequence)
      values (${merchantId}, ${streamId}, ${events.length}::bigint)
      on conflict (merchant_id, id)
        do update set last_sequence = event_stream.last_sequence + excluded.last_sequence
      returning merchant_id, id, last_sequence - ${events.length}::bigint + 1 as first
    ), fed as (
      insert into feed_entry (merchant_id, stream_id, first_sequence, events)
      select merchant_id, id, first, ${events.length}::int from counter
    ), stored as (
      insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
      select c.merchant_id, e.id, c.id, c.first + e.index, e.type,
        overlay(e.body placing (c.first + e.index)::text
          from position(${SEQUENCE} in e.body) for ${SEQUENCE.length}::int),
        e.occurred_at
      from counter c, (values ${sql.join(rows, sql`, `)}) as e (index, id, type, body, occurred_at)
      returning merchant_id, id, stream_id, sequence, type
    )
    insert into webhook_delivery (merchant_id, event_id, config_id, stream_id, sequence, state)
    select e.merchant_id, e.id, c.id, e.stream_id, e.sequence, 'PENDING'
    from stored e
    join webhook_config c on c.merchant_id = e.merchant_id and e.type = any (c.event_types)
    where c.is_active and c.deleted_at is null and c.id <> e.stream_id`);
}

function hashOf(text: string): RandomBytes {
  return (count) => createHash('sha256').update(text).digest().subarray(0, count);
}
