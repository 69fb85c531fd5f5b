import { randomBytes } from 'node:crypto';
import { asc, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { EventType } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import { outboxEvents, webhookDeliveries } from '../../schema/webhooks.ts';
import { findRecord, hasValues } from '../records.ts';

/** A place in the feed: the last event that a reader has read, and the mark of its entry. The beginning is 0, 0. */
export interface FeedPlace {
  position: number;
  mark: number;
}

export interface FeedEvent {
  id: string;
  type: EventType;
  occurredAt: number;
  sequence: number;
  body: string;
}

export interface FeedQuery {
  merchantId: string;
  /** Absent: from the oldest event that has its body. `now`: from the end. */
  after?: FeedPlace | 'now' | undefined;
  types?: readonly EventType[] | undefined;
  streamId?: string | undefined;
  limit: number;
}

export interface FeedPage {
  events: FeedEvent[];
  /** The place from which to read on: behind all that this page has looked at. */
  end: FeedPlace;
  /** False if entries follow that a filtered page has not looked at. */
  isAtEnd: boolean;
  /** `replaced`: the database was restored. `expired`: bodies behind `after` are deleted. Else null. */
  lost: 'replaced' | 'expired' | null;
  /** The time of the oldest event that has its body; null without one. */
  oldestAt: number | null;
  /** True if events have been committed that have no position yet. */
  isBehind: boolean;
}

/** Most entries that one statement numbers, and that one filtered page looks at. */
const ENTRIES_AT_ONCE = 1_000;
const MARK_BYTES = 6;

/**
 * Gives positions to the committed events of a merchant that have none: after all earlier ones, each stream in sequence.
 * A repeat, and several at once, are safe. Waits for no writer of events.
 */
export async function assignPositions(db: Db, merchantId: string): Promise<void> {
  let numbered: number;
  do numbered = await assignOnce(db, merchantId);
  while (numbered === ENTRIES_AT_ONCE);
}

/**
 * One statement, so a killed process leaves nothing half done. The counter's row is the lock. A statement that waited
 * for it may have selected entries that are numbered by now: it leaves them alone, and their new positions stay unused.
 */
async function assignOnce(db: Db, merchantId: string): Promise<number> {
  const mark = randomBytes(MARK_BYTES).readUIntBE(0, MARK_BYTES);
  const [row] = await db.execute<{ entries: number }>(sql`
    with next as materialized (
      select stream_id, first_sequence, events,
        sum(events) over (order by stream_id, first_sequence) as upto
      from (
        select stream_id, first_sequence, events from feed_entry
        where merchant_id = ${merchantId} and position is null
        order by stream_id, first_sequence
        limit ${ENTRIES_AT_ONCE}
      ) unnumbered
    ), counter as (
      insert into event_feed (merchant_id, last_position)
      select ${merchantId}, max(upto) from next having count(*) > 0
      on conflict (merchant_id)
        do update set last_position = event_feed.last_position + excluded.last_position
      returning last_position - (select max(upto) from next) as before
    ), numbered as (
      update feed_entry e set position = c.before + n.upto - n.events + 1, mark = ${mark}::bigint
      from next n, counter c
      where e.merchant_id = ${merchantId} and e.stream_id = n.stream_id
        and e.first_sequence = n.first_sequence and e.position is null
    )
    select count(*)::int as entries from next`);
  return row?.entries ?? 0;
}

/** Returns merchants with events that have no position. */
export async function merchantsBehind(db: Db, limit: number): Promise<string[]> {
  const rows = await db.execute<{ merchantId: string }>(sql`
    select distinct merchant_id as "merchantId" from feed_entry where position is null limit ${limit}`);
  return rows.map(({ merchantId }) => merchantId);
}

/** Returns the events behind a place, in the order of the feed. Numbers none. */
export async function readFeed(db: Db, query: FeedQuery): Promise<FeedPage> {
  const { merchantId, after, types, streamId, limit } = query;
  const place = after === 'now' ? null : after;
  const from =
    place === undefined ? sql`expired` : sql`${place?.position ?? Number.MAX_SAFE_INTEGER}::bigint`;
  // Every entry has an event. The first one may hold the event at `from`, and only earlier ones.
  const entriesMax = types === undefined ? limit + 1 : ENTRIES_AT_ONCE;
  const inStream = streamId === undefined ? sql`true` : sql`stream_id = ${streamId}`;
  const areTypes =
    types === undefined ? sql`true` : sql`o.type = any(string_to_array(${types.join(',')}, ','))`;
  const firstEntries = sql`(${entriesFrom(merchantId, sql`expired`, sql`true`, 2)})`;
  const [row] = await db.execute<{
    events: (FeedEvent & FeedPlace)[] | null;
    entries: number;
    looked: FeedPlace | null;
    last: FeedPlace | null;
    isKnown: boolean;
    isExpired: boolean;
    oldestAt: number | null;
    isBehind: boolean;
  }>(sql`
    with expiry as materialized (
      select coalesce(max(expired_position), 0) as expired
      from event_feed where merchant_id = ${merchantId}
    ), entry as materialized (
      ${entriesFrom(merchantId, from, inStream, entriesMax)}
    )
    select
      (select json_agg(json_build_object('id', id, 'type', type, 'occurredAt', at, 'sequence', sequence,
        'body', body, 'position', position, 'mark', mark) order by position)
        from (${eventsBehind(merchantId, from, { entries: sql`entry`, areTypes, limit })}) e) as events,
      (select count(*)::int from entry) as entries,
      (select ${LAST_PLACE} from entry order by position desc limit 1) as looked,
      (select ${LAST_PLACE} from feed_entry where merchant_id = ${merchantId} and position is not null
        order by position desc limit 1) as "last",
      ${place ? isHeld(merchantId, place) : sql`true`} as "isKnown",
      ${from} < expired as "isExpired",
      (select at from (${eventsBehind(merchantId, sql`expired`, { entries: firstEntries, limit: 1 })}) e)
        as "oldestAt",
      exists (select from feed_entry where merchant_id = ${merchantId} and position is null) as "isBehind"
    from expiry`);
  if (!row) throw new Error('the feed answered no row');
  const { looked, last, isKnown, isExpired, oldestAt, isBehind } = row;
  const events = row.events ?? [];
  const isAtEnd = events.length < limit && row.entries < entriesMax;
  const end = events.length === limit ? events.at(-1) : isAtEnd ? last : looked;
  return {
    events,
    end: end ?? { position: 0, mark: 0 },
    isAtEnd,
    lost: !isKnown ? 'replaced' : isExpired ? 'expired' : null,
    oldestAt,
    isBehind,
  };
}

/** SQL of the place behind an entry. */
const LAST_PLACE = sql.raw(`json_build_object('position', position + events - 1, 'mark', mark)`);

/** SQL of the first entries with events behind a place; the first one may have only earlier events. */
function entriesFrom(merchantId: string, from: SQL, condition: SQL, limit: number): SQL {
  return sql`select position, mark, stream_id, first_sequence, events from feed_entry
    where merchant_id = ${merchantId} and position is not null and ${condition}
      and position >= coalesce((
        select position from feed_entry
        where merchant_id = ${merchantId} and position <= (select ${from} from expiry)
        order by position desc limit 1), 0)
    order by position limit ${limit}`;
}

function eventsBehind(
  merchantId: string,
  from: SQL,
  { entries, areTypes = sql`true`, limit }: { entries: SQL; areTypes?: SQL; limit: number },
): SQL {
  return sql`select f.position + o.sequence - f.first_sequence as position, f.mark, o.id, o.type, o.sequence,
      o.body, (extract(epoch from o.occurred_at) * 1000)::bigint::float8 as at
    from ${entries} f
    join outbox_event o on o.merchant_id = ${merchantId} and o.stream_id = f.stream_id
      and o.sequence >= f.first_sequence and o.sequence < f.first_sequence + f.events
    where f.position + o.sequence - f.first_sequence > (select ${from} from expiry) and ${areTypes}
    order by 1 limit ${limit}`;
}

/** SQL: whether this history has numbered the event at the place. Every history has the beginning. */
function isHeld(merchantId: string, { position, mark }: FeedPlace): SQL {
  return sql`(${position}::bigint = 0 or coalesce((
    select position + events > ${position}::bigint and mark = ${mark}::bigint from feed_entry
    where merchant_id = ${merchantId} and position <= ${position}::bigint
    order by position desc limit 1), false))`;
}

export type EventDelivery = typeof webhookDeliveries.$inferSelect;

/** Returns an event of the merchant with its deliveries; null for an unknown id. */
export async function findEvent(db: Db, merchantId: string, eventId: string) {
  const event = await findRecord(db, outboxEvents, merchantId, eventId);
  if (event === null) return null;
  const deliveries = await db
    .select()
    .from(webhookDeliveries)
    .where(hasValues(webhookDeliveries, { merchantId, eventId }))
    .orderBy(asc(webhookDeliveries.configId));
  return { event, deliveries };
}
