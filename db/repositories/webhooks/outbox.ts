import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { EventEnvelope, EventType } from '../../../domain/events.ts';
import { newId } from '../../../domain/ids.ts';
import type { Db } from '../../client.ts';
import { eventStreams } from '../../schema/event-streams.ts';

export interface EventToStore {
  type: EventType;
  /** Business time: the time of the subscription's test clock, else real time. */
  occurredAt: number;
  /**
   * Returns the payload. Called once: the text is stored, and every delivery attempt sends the stored text.
   */
  body: (envelope: EventEnvelope) => Record<string, unknown>;
}

/**
 * Stores events of one stream in the caller's transaction, in the given order. Each event gets a
 * pending delivery for every active configuration of the merchant that subscribed to its type. The
 * counter's row stays locked until the transaction ends, so the sequence order is the commit order.
 *
 * Executes two statements, or none without events. A repeat would store the events again, so the caller's
 * transaction must prevent a repeat. Rules: D-50, D-52.
 */
export async function appendEvents(
  tx: Db,
  stream: { merchantId: string; streamId: string },
  events: EventToStore[],
): Promise<void> {
  if (events.length === 0) return;
  const { merchantId, streamId } = stream;
  const [counter] = await tx
    .insert(eventStreams)
    .values({ merchantId, id: streamId, lastSequence: events.length })
    .onConflictDoUpdate({
      target: [eventStreams.merchantId, eventStreams.id],
      set: { lastSequence: sql`${eventStreams.lastSequence} + ${events.length}` },
    })
    .returning({ lastSequence: eventStreams.lastSequence });
  if (!counter) throw new Error(`no event counter of ${streamId}`);

  const rows = events.map((event, index) => {
    const sequence = counter.lastSequence - events.length + 1 + index;
    const eventId = newId('evt', Date.now(), randomBytes);
    const body = JSON.stringify(event.body({ eventId, sequence }));
    const occurredAt = new Date(event.occurredAt).toISOString();
    return sql`(${merchantId}, ${eventId}, ${streamId}, ${sequence}, ${event.type}, ${body}, ${occurredAt})`;
  });
  await tx.execute(sql`
    with stored as (
      insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
      values ${sql.join(rows, sql`, `)}
      returning merchant_id, id, stream_id, sequence, type
    )
    insert into webhook_delivery (merchant_id, event_id, config_id, stream_id, sequence, state)
    select e.merchant_id, e.id, c.id, e.stream_id, e.sequence, 'PENDING'
    from stored e
    join webhook_config c on c.merchant_id = e.merchant_id and e.type = any (c.event_types)
    where c.is_active and c.deleted_at is null`);
}
