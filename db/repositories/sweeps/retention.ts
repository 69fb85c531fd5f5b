import { and, isNotNull, lt, or, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Db } from '../../client.ts';
import { gatewayEvents } from '../../schema/gateway-events.ts';
import { portalSessions } from '../../schema/portal-sessions.ts';
import { linkUses } from '../../schema/subscriptions.ts';
import { sweepCounts } from '../../schema/sweeps.ts';
import { areFirst, timestamp } from '../records.ts';

/** Selects the records older than `before` (epoch ms, real time), at most `limit` in one call. */
export interface Deletion {
  readonly before: number;
  readonly limit: number;
}

/** SQL: until when a merchant `m` keeps its events, or the attempts to deliver them, unless for the installation's time. */
const keptSince = (kept: 'bodyDays' | 'attemptDays', before: number): SQL =>
  sql`coalesce(now() - (m.settings -> 'webhookRetention' ->> ${kept})::int * interval '1 day',
    ${timestamp(before)})`;

/**
 * Deletes the settled deliveries of old events and shortens their bodies to the intent's id and the status. The
 * events stay: a stream's numbers have no gaps. An event with a pending delivery, or without a position in the feed,
 * stays unchanged.
 */
export async function deleteOldEvents(
  db: Db,
  { before, limit }: Deletion,
): Promise<{ bodies: number; deliveries: number }> {
  const [deleted] = await db.execute<{ bodies: number; deliveries: number }>(sql`
    with old as (
      select e.merchant_id, e.id, e.position
      from merchant m cross join lateral (
        select e.merchant_id, e.id, f.position + e.sequence - f.first_sequence as position
        from outbox_event e
        cross join lateral (
          select position, first_sequence from feed_entry f
          where f.merchant_id = e.merchant_id and f.stream_id = e.stream_id and f.position is not null
            and e.sequence >= f.first_sequence and e.sequence < f.first_sequence + f.events) f
        where e.merchant_id = m.id and e.inserted_at < ${keptSince('bodyDays', before)}
          and e.body_deleted_at is null
          and not exists (
            select from webhook_delivery d
            where d.merchant_id = e.merchant_id and d.event_id = e.id and d.state = 'PENDING')
        order by e.inserted_at
        limit ${limit}
        for update of e skip locked) e
      limit ${limit}),
    expired as (
      update event_feed f set expired_position = greatest(f.expired_position, old.position)
      from (select merchant_id, max(position) as position from old group by 1) old
      where f.merchant_id = old.merchant_id),
    gone as (
      delete from webhook_delivery d using old
      where d.merchant_id = old.merchant_id and d.event_id = old.id
      returning 1),
    shortened as (
      update outbox_event e
      set body_deleted_at = now(), body = json_build_object(
        'intentId', e.body::json -> 'intentId', 'status', e.body::json -> 'status')::text
      from old where e.merchant_id = old.merchant_id and e.id = old.id
      returning 1)
    select (select count(*) from shortened)::int as bodies, (select count(*) from gone)::int as deliveries`);
  return deleted ?? { bodies: 0, deliveries: 0 };
}

/** Deletes old attempts to deliver events. The attempt that delivered one is kept as long as its body. */
export async function deleteOldAttempts(db: Db, { before, limit }: Deletion): Promise<number> {
  const since = keptSince('attemptDays', before);
  const [deleted] = await db.execute<{ attempts: number }>(sql`
    with old as (
      select a.place from webhook_config c join merchant m on m.id = c.merchant_id
      cross join lateral (
        select a.ctid as place from webhook_attempt a
        where a.merchant_id = c.merchant_id and a.config_id = c.id and a.at < ${since}
        order by a.at limit ${limit}) a
      limit ${limit}),
    gone as (delete from webhook_attempt a using old where a.ctid = old.place returning 1)
    select count(*)::int as attempts from gone`);
  return deleted?.attempts ?? 0;
}

/** SQL for the time from which a payer may still look at the result of a closed session. */
const RESULT_SHOWN_SINCE = sql.raw(`now() - interval '1 day'`);

/**
 * Deletes old sessions and their tries, from a day after they last waited for a payer. A deleted session's page answers
 * 404.
 */
export async function deleteClosedSessions(db: Db, { before, limit }: Deletion): Promise<number> {
  const [deleted] = await db.execute<{ sessions: number }>(sql`
    with old as (
      select c.merchant_id, c.id from checkout_session c
      where c.inserted_at < ${timestamp(before)} and case c.purpose
        when 'subscription' then exists (
          select from subscription s
          where s.merchant_id = c.merchant_id and s.id = c.subscription_id and s.status <> 'CREATED')
          and not exists (
            select from outbox_event e
            where e.merchant_id = c.merchant_id and e.stream_id = c.subscription_id
              and e.type in ('subscription.trialing', 'subscription.active', 'subscription.ended')
              and e.inserted_at >= ${RESULT_SHOWN_SINCE})
        when 'payment' then exists (
          select from payment_intent i
          where i.merchant_id = c.merchant_id and i.id = c.intent_id and i.status <> 'PENDING'
            and i.updated_at < ${RESULT_SHOWN_SINCE}
            and (i.status not in ('CREATED', 'FAILED') or c.expires_at < ${timestamp(before)}))
        when 'setup_method' then exists (
          select from setup_method m
          where m.merchant_id = c.merchant_id and m.id = c.setup_method_id
            and coalesce(m.completed_at, c.expires_at) < ${RESULT_SHOWN_SINCE}
            and (m.status <> 'CREATED' or c.expires_at < ${timestamp(before)}))
        else c.expires_at < ${timestamp(before)} end
      order by c.inserted_at
      limit ${limit}
      for update skip locked),
    tries as (
      delete from checkout_try t using old
      where t.merchant_id = old.merchant_id and t.session_id = old.id),
    gone as (
      delete from checkout_session c using old
      where c.merchant_id = old.merchant_id and c.id = old.id
      returning 1)
    select count(*)::int as sessions from gone`);
  return deleted?.sessions ?? 0;
}

/** Deletes old rows of link uses. A row limits the uses of its client address for 10 minutes. */
export function deleteOldLinkUses(db: Db, deletion: Deletion): Promise<number> {
  return deleteOld(db, linkUses, linkUses.begunAt, deletion);
}

/** Deletes the sessions of payers' own pages that expired long ago. */
export function deleteOldPortalSessions(db: Db, deletion: Deletion): Promise<number> {
  return deleteOld(db, portalSessions, portalSessions.expiresAt, deletion);
}

/** Deletes old events. One that is not handled stays for 90 days, because Stripe does not send it again. */
export function deleteOldGatewayEvents(db: Db, deletion: Deletion): Promise<number> {
  const { handledAt, receivedAt } = gatewayEvents;
  const isDone = or(isNotNull(handledAt), lt(receivedAt, sql`now() - interval '90 days'`));
  return deleteOld(db, gatewayEvents, receivedAt, deletion, isDone);
}

async function deleteOld(
  db: Db,
  table: PgTable,
  at: AnyPgColumn,
  { before, limit }: Deletion,
  which?: SQL,
) {
  const condition = and(lt(at, before), which);
  const deleted = await db
    .delete(table)
    .where(areFirst(db, table, { condition, limit }))
    .returning({ one: sql`1` });
  return deleted.length;
}

/** Adds a sweep's repairs of one kind to `sweep_count`. A repeat counts the repairs again. */
export async function countRepairs(db: Db, kind: string, repaired: number): Promise<void> {
  const lastAt = sql`now()`;
  await db
    .insert(sweepCounts)
    .values({ kind, repaired, lastAt })
    .onConflictDoUpdate({
      target: sweepCounts.kind,
      set: { repaired: sql`${sweepCounts.repaired} + ${repaired}`, lastAt },
    });
}
