import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import { OPENS_AFTER_FAILURES } from '../../../domain/endpoint-breaker.ts';
import type { SendError } from '../../../domain/delivery-schedule.ts';
import type { EndpointRef } from '../../../domain/endpoint-breaker.ts';
import type { StreamRef } from '../../../domain/events.ts';
import type { Db } from '../../client.ts';
import type { DeliveryState } from '../../schema/webhooks.ts';
import { timestamp } from '../records.ts';

export interface RecordedAttempt {
  eventId: string;
  claimedUntil: number;
  /** The `updatedAt` of the configuration with which the attempt was made. */
  updatedAt: number;
  attempts: number;
  isManual: boolean;
  at: number;
  state: DeliveryState;
  /** Null after the last attempt. */
  nextAttemptAt: number | null;
  httpStatus: number | null;
  error: SendError | null;
  durationMs: number;
  answer: string | null;
}

/**
 * Stores, in one statement, the attempts at claimed deliveries of one endpoint, and releases claims without an
 * attempt. An attempt that was recorded before, or whose delivery is settled, changes nothing. A failure at a
 * configuration that was changed after `updatedAt` does not count and is not logged: its delivery is due at the new URL.
 */
export async function recordDeliveries(
  db: Db,
  { merchantId, configId }: EndpointRef,
  attempts: readonly RecordedAttempt[],
  released: readonly { eventId: string; claimedUntil: number }[],
): Promise<void> {
  const attemptRows = attempts.map((attempt) => ({
    ...attempt,
    claimedUntil: toTimestamp(attempt.claimedUntil),
    nextAttemptAt: toTimestamp(attempt.nextAttemptAt),
    at: toTimestamp(attempt.at),
    updatedAt: toTimestamp(attempt.updatedAt),
  }));
  const releasedRows = released.map(({ eventId, claimedUntil }) => ({
    eventId,
    claimedUntil: toTimestamp(claimedUntil),
  }));
  await db.execute(sql`
    with attempt as (
      select r.*, r.state = 'DELIVERED' or c.updated_at = r."updatedAt" as counts
      from webhook_config c, jsonb_to_recordset(${JSON.stringify(attemptRows)}::text::jsonb) as r (
        "eventId" text, "claimedUntil" timestamptz, attempts int, state text, "isManual" boolean,
        at timestamptz, "nextAttemptAt" timestamptz, "httpStatus" int, error text, "durationMs" int,
        answer text, "updatedAt" timestamptz)
      where c.merchant_id = ${merchantId} and c.id = ${configId}
      limit ${attempts.length} -- tells Postgres that they are few
    ), recorded as (
      update webhook_delivery d
      set attempts = r.attempts, state = r.state, next_attempt_at = coalesce(r."nextAttemptAt", r.at),
        last_http_status = r."httpStatus", last_error = r.error, claimed_until = null,
        settled_at = case when r.state <> 'PENDING' then r.at end,
        duration_ms = case when r.state = 'DELIVERED' then r."durationMs" end,
        answer = case when r.state = 'DELIVERED' then r.answer end
      from attempt r
      where r.counts and d.merchant_id = ${merchantId} and d.config_id = ${configId}
        -- Not by the state, or outdated statistics make Postgres read every pending delivery.
        and d.event_id = r."eventId" and d.settled_at is null and d.attempts = r.attempts - 1
      returning r.*
    ), logged as (
      insert into webhook_attempt (merchant_id, event_id, config_id, attempt, is_manual, at, http_status,
        error, duration_ms, answer, next_attempt_at)
      select ${merchantId}, r."eventId", ${configId}, r.attempts, r."isManual", r.at, r."httpStatus",
        r.error, r."durationMs", r.answer, r."nextAttemptAt"
      from recorded r where r.state <> 'DELIVERED'
    ), released as (
      select "eventId", "claimedUntil" from attempt where not counts
      union all
      (select * from jsonb_to_recordset(${JSON.stringify(releasedRows)}::text::jsonb) as r (
        "eventId" text, "claimedUntil" timestamptz) limit ${released.length})
    )
    update webhook_delivery d set claimed_until = null
    from released r
    where d.merchant_id = ${merchantId} and d.config_id = ${configId}
      and d.event_id = r."eventId" and d.claimed_until = r."claimedUntil"`);
}

export interface EndpointBacklog {
  remaining: number;
  /** Milliseconds until an unclaimed attempt is due; 0 if one is due now; null if there is none. */
  dueInMs: number | null;
  /** True if another process has claimed some of the deliveries. */
  isClaimed: boolean;
}

/** Returns the backlog of an endpoint. `nowAt` decides which deliveries are due. */
export async function endpointBacklog(
  db: Db,
  { merchantId, configId }: EndpointRef,
  nowAt: number,
): Promise<EndpointBacklog> {
  // After one or two failures a delivery blocks its stream, so only its next attempt counts.
  const [row] = await db.execute<{ [Key in keyof EndpointBacklog]: EndpointBacklog[Key] }>(sql`
    with line as (
      select count(*) as pending,
        bool_or(is_claimed) as is_claimed,
        case
          when bool_or(holds and is_claimed) then null
          when bool_or(holds and attempts > 0)
            then min(next_attempt_at) filter (where holds and attempts > 0)
          when bool_or(holds) then '-infinity'
        end as head_due_at,
        min(next_attempt_at) filter (where not holds and not is_claimed) as other_due_at
      from (
        select stream_id, is_resent, next_attempt_at,
          attempts - resent_after as attempts,
          attempts - resent_after < ${HOLDS_BACK_FAILURES} as holds,
          coalesce(claimed_until > now(), false) as is_claimed
        from webhook_delivery
        where merchant_id = ${merchantId} and config_id = ${configId} and state = 'PENDING'
      ) d
      group by stream_id, is_resent
    ), whole as (
      select coalesce(sum(pending), 0)::int as remaining,
        coalesce(bool_or(is_claimed), false) as is_claimed,
        min(least(head_due_at, other_due_at)) as due_at
      from line
    )
    select remaining, is_claimed as "isClaimed",
      case when due_at is null then null when due_at = '-infinity' then 0
        else greatest(0, extract(epoch from due_at - ${timestamp(nowAt)}) * 1000)
      end::float8 as "dueInMs"
    from whole`);
  return row ?? { remaining: 0, dueInMs: null, isClaimed: false };
}

/** Omits endpoints that their breaker pauses: their workflow drains at the end. Real time. */
export async function endpointsOf(
  db: Db,
  { merchantId, streamId }: StreamRef,
  nowAt: number,
): Promise<(EndpointRef & { isOpen: boolean })[]> {
  const rows = await db.execute<{ configId: string; isOpen: boolean }>(sql`
    select c.id as "configId", c.consecutive_failures >= ${OPENS_AFTER_FAILURES} as "isOpen"
    from webhook_config c
    where c.merchant_id = ${merchantId}
      and ${isNotPaused(nowAt)}
      and exists (
        select from webhook_delivery d
        where d.merchant_id = c.merchant_id and d.stream_id = ${streamId} and d.config_id = c.id
          and d.state = 'PENDING')`);
  return rows.map((row) => ({ ...row, merchantId }));
}

function isNotPaused(at: number) {
  return sql`(c.consecutive_failures < ${OPENS_AFTER_FAILURES}
    or c.paused_until is null or c.paused_until <= ${timestamp(at)})`;
}

/** SQL: whether later deliveries of the stream wait for this one, those sent again only for each other. */
export const holdsBack = (delivery: string): SQL =>
  sql.raw(`(${delivery}.attempts - ${delivery}.resent_after < ${HOLDS_BACK_FAILURES})`);

/** A delivery or a probe that is overdue by more than this time, in ms, counts as stalled. */
const STALLED_AFTER_MS = 30_000;

/**
 * Returns the endpoints with a delivery that is due for more than 30 s, unclaimed, and waits for no other. Omits
 * endpoints whose queue works. In random order. `nowAt` is real time.
 */
export async function stalledEndpoints(
  db: Db,
  nowAt: number,
  limit: number,
): Promise<EndpointRef[]> {
  const before = timestamp(nowAt - STALLED_AFTER_MS);
  const endpoints = await db.execute<{ merchantId: string; configId: string }>(sql`
    select c.merchant_id as "merchantId", c.id as "configId"
    from webhook_config c
    where ${isNotPaused(nowAt - STALLED_AFTER_MS)}
      and exists (
        select from webhook_delivery d
        where d.merchant_id = c.merchant_id and d.config_id = c.id and d.state = 'PENDING'
          and d.next_attempt_at < ${before}
          and (d.claimed_until is null or d.claimed_until <= now())
          and not exists (
            select from webhook_delivery b
            where b.merchant_id = d.merchant_id and b.stream_id = d.stream_id
              and b.config_id = d.config_id and b.state = 'PENDING'
              and b.is_resent = d.is_resent and b.sequence < d.sequence and ${holdsBack('b')}
              and (b.next_attempt_at >= ${before} or b.claimed_until > now())))
      and not exists (
        select from webhook_delivery d
        where d.merchant_id = c.merchant_id and d.config_id = c.id and d.state = 'PENDING'
          and d.next_attempt_at < ${before} and d.claimed_until > now())
    order by random()
    limit ${limit}`);
  return [...endpoints];
}

function toTimestamp(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
