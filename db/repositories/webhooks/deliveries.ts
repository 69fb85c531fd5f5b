import { sql } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import { OPENS_AFTER_FAILURES } from '../../../domain/endpoint-breaker.ts';
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
  state: DeliveryState;
  nextAttemptAt: number;
  httpStatus: number | null;
  error: string | null;
  settledAt: number | null;
}

/**
 * Stores, in one statement, the attempts at claimed deliveries of one endpoint, and releases claims without an
 * attempt. An attempt that was recorded before, or whose delivery is settled, changes nothing. A failure at a
 * configuration that was changed after `updatedAt` does not count: its delivery is due at the new URL.
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
    settledAt: toTimestamp(attempt.settledAt),
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
        "eventId" text, "claimedUntil" timestamptz, attempts int, state text,
        "nextAttemptAt" timestamptz, "httpStatus" int, error text, "settledAt" timestamptz,
        "updatedAt" timestamptz)
      where c.merchant_id = ${merchantId} and c.id = ${configId}
    ), recorded as (
      update webhook_delivery d
      set attempts = r.attempts, state = r.state, next_attempt_at = r."nextAttemptAt",
        last_http_status = r."httpStatus", last_error = r.error, settled_at = r."settledAt",
        claimed_until = null
      from attempt r
      where r.counts and d.merchant_id = ${merchantId} and d.config_id = ${configId}
        and d.event_id = r."eventId" and d.state = 'PENDING' and d.attempts = r.attempts - 1
    ), released as (
      select "eventId", "claimedUntil" from attempt where not counts
      union all
      select * from jsonb_to_recordset(${JSON.stringify(releasedRows)}::text::jsonb) as r (
        "eventId" text, "claimedUntil" timestamptz)
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
        select stream_id, attempts, next_attempt_at, attempts < ${HOLDS_BACK_FAILURES} as holds,
          coalesce(claimed_until > now(), false) as is_claimed
        from webhook_delivery
        where merchant_id = ${merchantId} and config_id = ${configId} and state = 'PENDING'
      ) d
      group by stream_id
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
              and b.sequence < d.sequence and b.attempts < ${HOLDS_BACK_FAILURES}
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
