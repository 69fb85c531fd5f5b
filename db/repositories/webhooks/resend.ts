import { and, gte, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { EndpointRef } from '../../../domain/endpoint-breaker.ts';
import type { Db } from '../../client.ts';
import { webhookConfigs, webhookRecoveries } from '../../schema/webhooks.ts';
import { findRecord, isRecord, timestamp } from '../records.ts';
import { DELIVERED } from './attempts.ts';
import { lockActiveConfig } from './configs.ts';

/**
 * `failed`: all attempts failed. `dropped`: the endpoint was deactivated before it was sent. `missing`: the endpoint was
 * inactive, or did not yet exist or subscribe, when the event was stored.
 */
export const MISSED_KINDS = ['failed', 'dropped', 'missing'] as const;
export type MissedKind = (typeof MISSED_KINDS)[number];

/** Most events that one recovery sends: the oldest ones. */
export const RECOVERED_MAX = 100_000;
/** Most events of one statement, which has 15 s. */
const RECOVERED_AT_ONCE = 25_000;

export interface RecoveryRequest extends EndpointRef {
  recoveryId: string;
  /** Real time at which the events were stored. */
  sinceAt: number;
  untilAt: number;
  kinds: readonly MissedKind[];
  at: number;
}

/**
 * Makes what an endpoint missed pending again, in the caller's transaction, so that a killed process leaves nothing half
 * done. Null for an unknown configuration, `inactive` for one to which nothing is sent.
 */
export async function recoverMissed(
  tx: Db,
  request: RecoveryRequest,
): Promise<{ events: number } | 'inactive' | null> {
  const { merchantId, configId, recoveryId: id, kinds, sinceAt, untilAt, at: createdAt } = request;
  const isActive = await lockActiveConfig(tx, request);
  if (isActive !== true) return isActive === null ? null : 'inactive';
  let events = 0;
  let chosen: number;
  do {
    chosen = await sendAgain(tx, request, missedEvents(request, events), id);
    events += chosen;
  } while (chosen === RECOVERED_AT_ONCE && events < RECOVERED_MAX);
  // Only then no missing event is left. Later ones have a delivery.
  if (kinds.includes('missing') && untilAt >= createdAt && events < RECOVERED_MAX) {
    await tx
      .update(webhookConfigs)
      .set({ missedSince: null })
      .where(
        and(
          isRecord(webhookConfigs, merchantId, configId),
          gte(webhookConfigs.missedSince, sinceAt),
        ),
      );
  }
  await tx.insert(webhookRecoveries).values({ merchantId, id, configId, events, createdAt });
  return { events };
}

/**
 * Makes one event pending again, delivered or not: at one endpoint, or at all active ones that subscribe to its type or
 * had it before. Returns their ids. Null for an unknown configuration, `inactive` if there is no active one.
 */
export async function resendEvent(
  tx: Db,
  request: { merchantId: string; configId: string | undefined; eventId: string; at: number },
): Promise<string[] | 'inactive' | null> {
  const { merchantId, configId, eventId } = request;
  const isAsked =
    configId === undefined
      ? sql`(d.event_id is not null or e.type = any (c.event_types)) and c.id <> e.stream_id`
      : sql`c.id = ${configId}`;
  const configs = await tx.execute<{ id: string; isActive: boolean }>(sql`
    select c.id, c.is_active as "isActive"
    from webhook_config c
    join outbox_event e on e.merchant_id = c.merchant_id and e.id = ${eventId}
    left join webhook_delivery d on d.merchant_id = c.merchant_id and d.event_id = e.id and d.config_id = c.id
    where c.merchant_id = ${merchantId} and c.deleted_at is null and ${isAsked}
    order by c.id
    for no key update of c`);
  if (configId !== undefined && configs.length === 0) return null;
  const ids = configs.filter(({ isActive }) => isActive).map(({ id }) => id);
  for (const id of ids) {
    const event = sql`select e.id, e.stream_id, e.sequence, d.state, 0 as rank from outbox_event e
      left join webhook_delivery d on d.merchant_id = e.merchant_id and d.event_id = e.id and d.config_id = ${id}
      where e.merchant_id = ${merchantId} and e.id = ${eventId}`;
    await sendAgain(tx, { merchantId, configId: id, at: request.at }, event, null);
  }
  return ids.length > 0 ? ids : 'inactive';
}

/** SQL of the next events that an endpoint missed, oldest first, after `before` ones that are pending again. */
function missedEvents(
  { merchantId, configId, sinceAt, untilAt, kinds }: RecoveryRequest,
  before: number,
): SQL {
  const states = kinds.filter((kind) => kind !== 'missing').map((kind) => kind.toUpperCase());
  return sql`select e.id, e.stream_id, e.sequence, e.state,
      ${before}::int + row_number() over (order by e.inserted_at, e.stream_id, e.sequence) as rank
    from webhook_config c cross join lateral (
      select e.id, e.stream_id, e.sequence, e.type, e.inserted_at, (
        -- Not a join: by outdated statistics, 100,000 events would take minutes.
        select d.state from webhook_delivery d
        where d.merchant_id = e.merchant_id and d.event_id = e.id and d.config_id = c.id) as state
      from outbox_event e
      where e.merchant_id = c.merchant_id and e.body_deleted_at is null
        and e.inserted_at >= ${timestamp(sinceAt)} and e.inserted_at < ${timestamp(untilAt)}
      offset 0) e
    where c.merchant_id = ${merchantId} and c.id = ${configId}
      and case when e.state is null
        then ${kinds.includes('missing')} and e.type = any (c.event_types) and e.stream_id <> c.id
        else e.state = any (string_to_array(${states.join(',')}, ',')) end
    order by e.inserted_at, e.stream_id, e.sequence
    limit ${RECOVERED_AT_ONCE}`;
}

/**
 * The attempt that delivered an event gets a row of its own, because the delivery's row will tell of another one. A
 * pending delivery becomes due; it keeps its place. Their due dates keep the order of the events.
 */
async function sendAgain(
  tx: Db,
  { merchantId, configId, at }: EndpointRef & { at: number },
  events: SQL,
  recoveryId: string | null,
): Promise<number> {
  const [row] = await tx.execute<{ events: number }>(sql`
    with chosen as materialized (${events}), logged as (
      insert into webhook_attempt (merchant_id, event_id, config_id, attempt, is_manual, at, http_status, error,
        duration_ms, answer, next_attempt_at)
      select ${merchantId}, ${DELIVERED} from chosen c cross join lateral (
        select * from webhook_delivery d
        where d.merchant_id = ${merchantId} and d.event_id = c.id and d.config_id = ${configId} limit 1) d
      where c.state = 'DELIVERED'
    ), pending as (
      insert into webhook_delivery as d (merchant_id, event_id, config_id, stream_id, sequence, state, is_resent,
        next_attempt_at, recovery_id)
      select ${merchantId}, c.id, ${configId}, c.stream_id, c.sequence, 'PENDING', true,
        ${timestamp(at)} + c.rank * interval '1 millisecond', ${recoveryId}
      from chosen c
      on conflict (merchant_id, event_id, config_id) do update set state = 'PENDING',
        is_resent = d.state <> 'PENDING' or d.is_resent,
        resent_after = case when d.state = 'PENDING' then d.resent_after else d.attempts end,
        next_attempt_at = excluded.next_attempt_at, settled_at = null, duration_ms = null, answer = null,
        recovery_id = coalesce(excluded.recovery_id, d.recovery_id)
      returning 1
    )
    select count(*)::int as events from pending`);
  return row?.events ?? 0;
}

export interface Recovery {
  id: string;
  configId: string;
  events: number;
  createdAt: number;
  /** Deliveries of this recovery by their present state. */
  delivered: number;
  pending: number;
  failed: number;
}

/** Returns a recovery and its progress; null for an unknown id. A later recovery takes over the events of both. */
export async function findRecovery(
  db: Db,
  merchantId: string,
  recoveryId: string,
): Promise<Recovery | null> {
  const recovery = await findRecord(db, webhookRecoveries, merchantId, recoveryId);
  if (recovery === null) return null;
  const [counts] = await db.execute<{ delivered: number; pending: number; failed: number }>(sql`
    select count(*) filter (where state = 'DELIVERED')::int as delivered,
      count(*) filter (where state = 'PENDING')::int as pending,
      count(*) filter (where state in ('FAILED', 'DROPPED'))::int as failed
    from webhook_delivery where merchant_id = ${merchantId} and recovery_id = ${recoveryId}`);
  return { ...recovery, ...(counts ?? { delivered: 0, pending: 0, failed: 0 }) };
}
