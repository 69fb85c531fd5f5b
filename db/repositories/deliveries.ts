import { sql } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../domain/delivery-schedule.ts';
import type { Breaker } from '../../domain/endpoint-breaker.ts';
import type { Db } from '../client.ts';
import type { DeliveryState } from '../schema/webhook-deliveries.ts';

export interface StreamRef {
  merchantId: string;
  streamId: string;
}

/** A webhook configuration as the place that deliveries go to. */
export interface EndpointRef {
  merchantId: string;
  configId: string;
}

/** What an attempt changed. */
export interface RecordedAttempt {
  configId: string;
  eventId: string;
  /** Attempts made, this one included. */
  attempts: number;
  state: DeliveryState;
  nextAttemptAt: number;
  httpStatus: number | null;
  error: string | null;
  settledAt: number | null;
}

/** A claim that is given up without an attempt. */
export interface ReleasedClaim {
  configId: string;
  eventId: string;
  claimedUntil: number;
}

/** A breaker's new state, counted from the state that was read. */
export interface BreakerChange {
  configId: string;
  from: Breaker;
  to: Breaker;
}

export interface DeliveryRecord {
  attempts: readonly RecordedAttempt[];
  released: readonly ReleasedClaim[];
  breakers: readonly BreakerChange[];
}

/**
 * Stores, in one statement, what became of claimed deliveries: attempts, released claims, breakers.
 * An attempt counts once: one that was recorded before, or whose delivery is settled, changes nothing.
 * A breaker changes only if it still is as it was read. Answers the configurations whose breaker
 * changed, and whether `stream` has a first attempt to make that no process has claimed, to an
 * endpoint of this record.
 */
export async function recordDeliveries(
  db: Db,
  merchantId: string,
  record: DeliveryRecord,
  streamId: string | null = null,
): Promise<{ changedBreakers: string[]; hasMore: boolean }> {
  const attempts = record.attempts.map(({ nextAttemptAt, settledAt, ...attempt }) => ({
    ...attempt,
    nextAttemptAt: toTimestamp(nextAttemptAt),
    settledAt: toTimestamp(settledAt),
  }));
  const released = record.released.map(({ claimedUntil, ...claim }) => ({
    ...claim,
    claimedUntil: toTimestamp(claimedUntil),
  }));
  // Two records of several endpoints must lock their rows in one order.
  const breakers = record.breakers
    .toSorted((left, right) => (left.configId < right.configId ? -1 : 1))
    .map(({ configId, from, to }) => ({
      configId,
      fromFailures: from.consecutiveFailures,
      fromPaused: toTimestamp(from.pausedUntil),
      fromSince: toTimestamp(from.failingSince),
      toFailures: to.consecutiveFailures,
      toPaused: toTimestamp(to.pausedUntil),
      toSince: toTimestamp(to.failingSince),
    }));
  // `changed` is read by the other parts so that configurations are locked before deliveries, as
  // wherever a configuration is deleted or deactivated.
  const [row] = await db.execute<{ changed: string | null; hasMore: boolean }>(sql`
    with changed as (
      update webhook_config c
      set consecutive_failures = b."toFailures", paused_until = b."toPaused",
        failing_since = b."toSince"
      from jsonb_to_recordset(${JSON.stringify(breakers)}::text::jsonb) as b ("configId" text,
        "fromFailures" int, "fromPaused" timestamptz, "fromSince" timestamptz,
        "toFailures" int, "toPaused" timestamptz, "toSince" timestamptz)
      where c.merchant_id = ${merchantId} and c.id = b."configId"
        and c.consecutive_failures = b."fromFailures"
        and c.paused_until is not distinct from b."fromPaused"
        and c.failing_since is not distinct from b."fromSince"
      returning c.id
    ), attempt as (
      select * from jsonb_to_recordset(${JSON.stringify(attempts)}::text::jsonb) as r (
        "configId" text, "eventId" text, attempts int, state text, "nextAttemptAt" timestamptz,
        "httpStatus" int, error text, "settledAt" timestamptz)
      where (select count(*) from changed) >= 0
    ), recorded as (
      update webhook_delivery d
      set attempts = r.attempts, state = r.state, next_attempt_at = r."nextAttemptAt",
        last_http_status = r."httpStatus", last_error = r.error, settled_at = r."settledAt",
        claimed_until = null
      from attempt r
      where d.merchant_id = ${merchantId} and d.config_id = r."configId"
        and d.event_id = r."eventId" and d.state = 'PENDING' and d.attempts = r.attempts - 1
    ), released as (
      update webhook_delivery d set claimed_until = null
      from jsonb_to_recordset(${JSON.stringify(released)}::text::jsonb) as r (
        "configId" text, "eventId" text, "claimedUntil" timestamptz)
      where d.merchant_id = ${merchantId} and d.config_id = r."configId"
        and d.event_id = r."eventId" and d.claimed_until = r."claimedUntil"
        and (select count(*) from changed) >= 0
    )
    select (select string_agg(id, ',') from changed) as changed,
      ${
        streamId === null
          ? sql`false`
          : sql`exists (
        select from webhook_delivery d
        where d.merchant_id = ${merchantId} and d.stream_id = ${streamId}
          and d.state = 'PENDING' and d.attempts = 0
          and (d.claimed_until is null or d.claimed_until <= now())
          and d.config_id in (select "configId" from attempt))`
      } as "hasMore"`);
  return { changedBreakers: row?.changed?.split(',') ?? [], hasMore: row?.hasMore ?? false };
}

/** What is left for an endpoint. */
export interface EndpointBacklog {
  /** Deliveries still pending, claimed ones included. */
  remaining: number;
  /** Milliseconds until an attempt is due that no process has claimed; 0 when one is. */
  dueInMs: number | null;
  /** Another process is sending some. */
  isClaimed: boolean;
}

/** Looks at everything pending for an endpoint. Dueness is judged at `nowAt`. */
export async function endpointBacklog(
  db: Db,
  { merchantId, configId }: EndpointRef,
  nowAt: number,
): Promise<EndpointBacklog> {
  // Later events wait behind one that failed once or twice, and have made no attempt themselves.
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
        else greatest(0, extract(epoch from due_at - ${toTimestamp(nowAt)}::timestamptz) * 1000)
      end::float8 as "dueInMs"
    from whole`);
  return row ?? { remaining: 0, dueInMs: null, isClaimed: false };
}

/**
 * The endpoints that a stream has something pending for, without those whose breaker is paused: their
 * queue runs. `nowAt` is real time.
 */
export async function endpointsOf(
  db: Db,
  { merchantId, streamId }: StreamRef,
  nowAt: number,
): Promise<EndpointRef[]> {
  const endpoints = await db.execute<{ merchantId: string; configId: string }>(sql`
    select c.merchant_id as "merchantId", c.id as "configId"
    from webhook_config c
    where c.merchant_id = ${merchantId}
      and (c.paused_until is null or c.paused_until <= ${toTimestamp(nowAt)}::timestamptz)
      and exists (
        select from webhook_delivery d
        where d.merchant_id = c.merchant_id and d.stream_id = ${streamId} and d.config_id = c.id
          and d.state = 'PENDING')`);
  return [...endpoints];
}

/** A delivery this much behind its time, or a probe, has been lost sight of. */
const STALLED_AFTER_MS = 30_000;

/**
 * Endpoints with a delivery that has been due for more than 30 s, is not waiting behind an earlier
 * one's next attempt, and is not claimed. Left out are endpoints whose breaker paused them within the
 * last 30 s, and those of which another such delivery is claimed: their queue is at work. Any of them,
 * so that many that cannot be helped do not keep the sweep from the others. `nowAt` is real time.
 */
export async function stalledEndpoints(
  db: Db,
  nowAt: number,
  limit: number,
): Promise<EndpointRef[]> {
  const before = sql`${toTimestamp(nowAt - STALLED_AFTER_MS)}::timestamptz`;
  const endpoints = await db.execute<{ merchantId: string; configId: string }>(sql`
    select c.merchant_id as "merchantId", c.id as "configId"
    from webhook_config c
    where (c.paused_until is null or c.paused_until < ${before})
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
