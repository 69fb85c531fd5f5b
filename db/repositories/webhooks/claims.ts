import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import { OPENS_AFTER_FAILURES } from '../../../domain/endpoint-breaker.ts';
import type { Breaker, EndpointRef } from '../../../domain/endpoint-breaker.ts';
import type { Db } from '../../client.ts';
import { timestamp } from '../records.ts';
import { holdsBack } from './deliveries.ts';

/**
 * Only the process that claimed a delivery may send it. A claimed one with fewer than three failures blocks its
 * stream. A claim ends when it is recorded, released, or at `claimed_until`.
 */

export interface Endpoint extends EndpointRef {
  url: string;
  sealedSigner: Buffer;
  sealedPreviousSigner: Buffer | null;
  previousSignerUntil: number | null;
  isActive: boolean;
  /** The time of the merchant's last change, or of the deactivation. */
  updatedAt: number;
  breaker: Breaker;
}

export interface ClaimedDelivery {
  eventId: string;
  attempts: number;
  isResent: boolean;
  /** Number of attempts before the merchant asked to send the event again. */
  resentAfter: number;
  body: string;
  /** The end of the claim, in ms of the database's clock. This value also identifies the claim. */
  claimedUntil: number;
}

export interface EndpointClaim {
  endpoint: Endpoint;
  /** Each batch contains deliveries of one stream, in sequence order, without a gap after the first one. */
  batches: ClaimedDelivery[][];
}

/** Maximum number of first deliveries of one stream to one endpoint in one claim. Of those sent again: one. */
const BATCH_SIZE = 20;

const IS_FREE = sql`(d.claimed_until is null or d.claimed_until <= now())`;

/** `batch` and the columns of a delivery are null in the only row of a claim that took nothing. */
type ClaimRow = Omit<Endpoint, 'merchantId' | 'breaker'> & {
  consecutiveFailures: number;
  pausedUntil: number | null;
  failingSince: number | null;
  batch: string | null;
} & Pick<ClaimedDelivery, keyof ClaimedDelivery>;

interface Claiming {
  nowAt: number;
  claimMs: number;
  batches: number;
  /** How many of the batches may be of deliveries that are sent again, after all others. */
  resentBatches: number;
  mayProbe: boolean;
}

/**
 * Reads the configuration and claims due deliveries in one statement, in at most `batches` batches of one stream
 * each; with an open breaker only the probe, if `mayProbe`. Null for an unknown configuration.
 */
export async function claimForEndpoint(
  db: Db,
  { merchantId, configId }: EndpointRef,
  claiming: Claiming,
): Promise<EndpointClaim | null> {
  const rows = await db.execute<ClaimRow>(claimStatement(merchantId, configId, claiming));
  const [first] = rows;
  if (!first) return null;
  const batches = new Map<string, ClaimedDelivery[]>();
  for (const { batch, ...delivery } of rows) {
    if (batch === null) continue;
    const deliveries = batches.get(batch) ?? [];
    const { eventId, attempts, isResent, resentAfter, claimedUntil, body } = delivery;
    deliveries.push({ eventId, attempts, isResent, resentAfter, claimedUntil, body });
    batches.set(batch, deliveries);
  }
  const { consecutiveFailures, pausedUntil, failingSince } = first;
  const breaker = { consecutiveFailures, pausedUntil, failingSince };
  return { endpoint: { ...first, merchantId, breaker }, batches: [...batches.values()] };
}

function claimStatement(merchantId: string, configId: string, claiming: Claiming) {
  const nowAt = timestamp(claiming.nowAt);
  return sql`
    with endpoint as (
      select *, consecutive_failures >= ${OPENS_AFTER_FAILURES} as is_open
      from webhook_config where merchant_id = ${merchantId} and id = ${configId}
    ), allowed as ( -- how much the breaker lets through: all, one probe, or nothing
      select case
          when not is_active or (is_open and paused_until > ${nowAt}) then 0
          when is_open then ${claiming.mayProbe ? 1 : 0}::int
          else ${claiming.batches}::int
        end as batches,
        case when is_open then 1 else ${BATCH_SIZE}::int end as batch_size
      from endpoint
    ), head as ( -- the next due delivery of each stream and kind, first deliveries before those sent again
      (${heads({ merchantId, configId, nowAt, isResent: false })}
        limit (select batches from allowed))
      union all
      (${heads({ merchantId, configId, nowAt, isResent: true })}
        limit (select least(batches, ${claiming.resentBatches}::int) from allowed))
      order by is_resent, next_attempt_at
      limit (select batches from allowed)
    ), candidate as ( -- a head, and after one that holds its stream back the next of the stream as its batch
      select h.event_id as batch, h.is_resent, h.next_attempt_at as due_at, h.event_id, h.sequence, h.attempts,
        h.resent_after
      from head h where h.is_resent or not h.holds_back
      union all
      select h.stream_id, false, h.next_attempt_at, f.event_id, f.sequence, f.attempts, 0
      from head h cross join lateral (
        select d.event_id, d.sequence, d.attempts
        from webhook_delivery d
        where d.merchant_id = ${merchantId} and d.stream_id = h.stream_id
          and d.config_id = ${configId} and d.state = 'PENDING' and not d.is_resent
          and d.attempts < ${HOLDS_BACK_FAILURES}
        order by d.sequence
        limit (select batch_size from allowed)
      ) f where h.holds_back and not h.is_resent
    ), locked as ( -- without a condition on the state, for which Postgres may read every pending delivery
      select d.event_id, d.state = 'PENDING' and d.attempts = k.attempts and ${IS_FREE} as is_free
      from webhook_delivery d join candidate k on k.event_id = d.event_id
      where d.merchant_id = ${merchantId} and d.config_id = ${configId}
      order by k.sequence
      for update of d skip locked
    ), whole as ( -- a batch ends before its first delivery that another process has locked or changed since
      select k.event_id,
        bool_and(coalesce(l.is_free, false)) over (partition by k.batch order by k.sequence) as is_free
      from candidate k left join locked l on l.event_id = k.event_id
    ), taken as ( -- one end for the claim of all
      update webhook_delivery d
      set claimed_until = now() + ${claiming.claimMs} * interval '1 millisecond'
      from whole w
      where w.is_free and d.merchant_id = ${merchantId} and d.config_id = ${configId}
        and d.event_id = w.event_id
      returning d.event_id, d.claimed_until
    )
    select c.id as "configId", c.url, c.sealed_signer as "sealedSigner",
      c.sealed_previous_signer as "sealedPreviousSigner", c.is_active as "isActive",
      c.consecutive_failures as "consecutiveFailures", ${ms('c.previous_signer_until')} as "previousSignerUntil",
      ${ms('c.updated_at')} as "updatedAt", ${ms('c.paused_until')} as "pausedUntil",
      ${ms('c.failing_since')} as "failingSince", ${ms('t.claimed_until')} as "claimedUntil",
      e.body, k.batch, k.event_id as "eventId", k.attempts, k.resent_after as "resentAfter",
      k.is_resent as "isResent"
    from endpoint c
    left join (candidate k join taken t on t.event_id = k.event_id
      join outbox_event e on e.merchant_id = ${merchantId} and e.id = k.event_id) on true
    order by k.is_resent, k.due_at, k.batch, k.sequence`;
}

/** SQL of the due deliveries of one kind that wait for no earlier one of their stream and kind. */
function heads({
  merchantId,
  configId,
  nowAt,
  isResent,
}: {
  merchantId: string;
  configId: string;
  nowAt: SQL;
  isResent: boolean;
}): SQL {
  return sql`select d.event_id, d.stream_id, d.sequence, d.attempts, d.resent_after, d.next_attempt_at,
      d.is_resent, ${holdsBack('d')} as holds_back
    from webhook_delivery d
    where d.merchant_id = ${merchantId} and d.config_id = ${configId} and d.state = 'PENDING'
      and ${isResent ? sql`d.is_resent` : sql`not d.is_resent`}
      and (d.attempts = d.resent_after or d.next_attempt_at <= ${nowAt})
      and ${IS_FREE}
      and (not ${holdsBack('d')} or d.sequence <= (
        select b.sequence from webhook_delivery b
        where b.merchant_id = d.merchant_id and b.stream_id = d.stream_id
          and b.config_id = d.config_id and b.state = 'PENDING' and b.is_resent = d.is_resent
          and ${holdsBack('b')}
        -- With outdated statistics Postgres takes two indexes for equal. The order makes it choose that of the stream.
        order by b.sequence limit 1))
    order by d.next_attempt_at`;
}

/** Returns the configuration's `updatedAt`, which each change and the deactivation raise; null for an unknown id. */
export async function readUpdatedAt(
  db: Db,
  { merchantId, configId }: EndpointRef,
): Promise<number | null> {
  const [row] = await db.execute<{ updatedAt: number }>(sql`
    select ${ms('updated_at')} as "updatedAt" from webhook_config
    where merchant_id = ${merchantId} and id = ${configId}`);
  return row?.updatedAt ?? null;
}

function ms(column: string) {
  return sql.raw(`(extract(epoch from ${column}) * 1000)::float8`);
}
