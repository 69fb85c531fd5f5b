import { sql } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import type { Breaker } from '../../../domain/endpoint-breaker.ts';
import type { Db } from '../../client.ts';
import type { DeliveryState } from '../../schema/webhook-deliveries.ts';

export interface StreamRef {
  merchantId: string;
  streamId: string;
}

/** A webhook configuration that deliveries go to. */
export interface EndpointRef {
  merchantId: string;
  configId: string;
}

/** The columns of a delivery's row that one attempt updates. */
export interface RecordedAttempt {
  configId: string;
  eventId: string;
  /** Number of attempts made, this one included. */
  attempts: number;
  state: DeliveryState;
  nextAttemptAt: number;
  httpStatus: number | null;
  error: string | null;
  settledAt: number | null;
}

/** A claim that ends without an attempt. */
export interface ReleasedClaim {
  configId: string;
  eventId: string;
  claimedUntil: number;
}

/** A configuration as a process read it: each change by the merchant and each deactivation changes `updatedAt`. */
export interface ReadConfig {
  configId: string;
  updatedAt: number;
}

/** A circuit breaker's new state, and the state that the process read. */
export interface BreakerChange extends ReadConfig {
  from: Breaker;
  to: Breaker;
}

export interface DeliveryRecord {
  attempts: readonly RecordedAttempt[];
  released: readonly ReleasedClaim[];
  breakers: readonly BreakerChange[];
  /** The configurations with which the attempts were made. */
  configs: readonly ReadConfig[];
}

/**
 * Stores, in one statement, the results of claimed deliveries: attempts, released claims and circuit
 * breakers. An attempt that was recorded before, or whose delivery is settled, changes nothing. A breaker
 * changes only if its row still has the state and the `updatedAt` that were read.
 *
 * Returns the configurations whose breaker changed. `changedConfigs` are the configurations of `configs` that were
 * changed after they were read. `hasMore` is true if the stream `streamId` has an unclaimed
 * delivery without attempts to an endpoint of the recorded attempts.
 */
export async function recordDeliveries(
  db: Db,
  merchantId: string,
  record: DeliveryRecord,
  streamId: string | null = null,
): Promise<{ changedBreakers: string[]; changedConfigs: string[]; hasMore: boolean }> {
  const attempts = record.attempts.map(({ nextAttemptAt, settledAt, ...attempt }) => ({
    ...attempt,
    nextAttemptAt: toTimestamp(nextAttemptAt),
    settledAt: toTimestamp(settledAt),
  }));
  const released = record.released.map(({ claimedUntil, ...claim }) => ({
    ...claim,
    claimedUntil: toTimestamp(claimedUntil),
  }));
  const breakers = breakerRows(record.breakers);
  const configs = record.configs.map(({ configId, updatedAt }) => ({
    configId,
    updatedAt: toTimestamp(updatedAt),
  }));
  // The other CTEs read from `changed`, so configurations are locked before deliveries. Code that deletes or
  // deactivates a configuration uses the same order.
  const [row] = await db.execute<{
    changed: string | null;
    changedConfigs: string | null;
    hasMore: boolean;
  }>(sql`
    with changed as (
      update webhook_config c
      set consecutive_failures = b."toFailures", paused_until = b."toPaused",
        failing_since = b."toSince"
      from jsonb_to_recordset(${JSON.stringify(breakers)}::text::jsonb) as b ("configId" text,
        "updatedAt" timestamptz, "fromFailures" int, "fromPaused" timestamptz, "fromSince" timestamptz,
        "toFailures" int, "toPaused" timestamptz, "toSince" timestamptz)
      where c.merchant_id = ${merchantId} and c.id = b."configId"
        and c.updated_at = b."updatedAt" and c.consecutive_failures = b."fromFailures"
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
      (select string_agg(c.id, ',')
        from jsonb_to_recordset(${JSON.stringify(configs)}::text::jsonb) as r (
          "configId" text, "updatedAt" timestamptz)
        join webhook_config c on c.merchant_id = ${merchantId} and c.id = r."configId"
        where c.updated_at <> r."updatedAt") as "changedConfigs",
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
  return {
    changedBreakers: row?.changed?.split(',') ?? [],
    changedConfigs: row?.changedConfigs?.split(',') ?? [],
    hasMore: row?.hasMore ?? false,
  };
}

/** Every process must lock the rows of endpoints in the same order, to avoid deadlocks. */
function breakerRows(breakers: readonly BreakerChange[]) {
  return breakers
    .toSorted((left, right) => (left.configId < right.configId ? -1 : 1))
    .map(({ configId, updatedAt, from, to }) => ({
      configId,
      updatedAt: toTimestamp(updatedAt),
      fromFailures: from.consecutiveFailures,
      fromPaused: toTimestamp(from.pausedUntil),
      fromSince: toTimestamp(from.failingSince),
      toFailures: to.consecutiveFailures,
      toPaused: toTimestamp(to.pausedUntil),
      toSince: toTimestamp(to.failingSince),
    }));
}

/** The pending deliveries of an endpoint. */
export interface EndpointBacklog {
  /** Number of pending deliveries, claimed ones included. */
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
  // A delivery that failed once or twice blocks the later deliveries of its stream, so only the failed
  // delivery's next attempt counts.
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
 * Returns the endpoints with pending deliveries of a stream. Endpoints that their breaker pauses are omitted,
 * because their queue already runs. `nowAt` is real time.
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

/** A delivery or a probe that is overdue by more than this time, in ms, counts as stalled. */
const STALLED_AFTER_MS = 30_000;

/**
 * Returns the endpoints with a stalled delivery: a delivery that has been due for more than 30 s, is not
 * claimed, and does not wait for an earlier delivery.
 *
 * Two kinds of endpoints are omitted, because their queue works: an endpoint whose pause by the breaker lasts or
 * ended less than 30 s ago, and an endpoint with another overdue delivery that is claimed. The order is random, so
 * that endpoints that stay stalled do not use up the limit. `nowAt` is real time.
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
