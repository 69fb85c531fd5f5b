import { sql } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import { OPENS_AFTER_FAILURES } from '../../../domain/endpoint-breaker.ts';
import type { Breaker } from '../../../domain/endpoint-breaker.ts';
import type { Db } from '../../client.ts';
import type { EndpointRef, StreamRef } from './deliveries.ts';

/**
 * A process may send a delivery only if it has claimed the delivery's row. Deliveries of one stream to one
 * endpoint are sent in order: while a process has claimed a delivery with fewer than three failures, no
 * other process may send a later one. A claim ends when the attempt is recorded, when the claim is released,
 * or at `claimed_until` by the database's clock.
 */

/** A webhook endpoint with its signing secrets and its circuit breaker. */
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

/** A delivery that this process may send until the claim ends. */
export interface ClaimedDelivery {
  eventId: string;
  attempts: number;
  nextAttemptAt: number;
  body: string;
  /** The end of the claim, in ms of the database's clock. This value also identifies the claim. */
  claimedUntil: number;
}

/** Claimed deliveries of one stream to one endpoint. */
export interface ClaimedBatch {
  /** In sequence order, without a gap after the first one. */
  deliveries: ClaimedDelivery[];
  /** Claimed, but another process has claimed an earlier delivery. The caller must release the claims. */
  unsendable: ClaimedDelivery[];
}

/** Why a stream's deliveries to an endpoint were not claimed. */
export type LeftReason =
  | 'inactive'
  /** While the circuit breaker is open, only the endpoint queue sends: the workflow `webhookEndpoint`. */
  | 'breaker_open'
  /** The caller excluded the endpoint. */
  | 'excepted'
  /** Another process sends the deliveries. */
  | 'claimed'
  /**
   * The next attempt of a failed delivery is not due yet, or every pending delivery has failed at least three
   * times.
   */
  | 'not_due';

export interface StreamClaim {
  taken: { endpoint: Endpoint; batch: ClaimedBatch }[];
  left: { endpoint: Endpoint; reason: LeftReason }[];
}

/** Maximum number of deliveries of one stream to one endpoint in one claim. */
const BATCH_SIZE = 20;

const IS_FREE = sql`(d.claimed_until is null or d.claimed_until <= now())`;

const ENDPOINT_COLUMNS = sql`c.id as "configId", c.url, c.sealed_signer as "sealedSigner",
  c.sealed_previous_signer as "sealedPreviousSigner",
  (extract(epoch from c.previous_signer_until) * 1000)::float8 as "previousSignerUntil",
  c.is_active as "isActive", (extract(epoch from c.updated_at) * 1000)::float8 as "updatedAt",
  c.consecutive_failures as "consecutiveFailures",
  (extract(epoch from c.paused_until) * 1000)::float8 as "pausedUntil",
  (extract(epoch from c.failing_since) * 1000)::float8 as "failingSince"`;

const DELIVERY_COLUMNS = sql`k.event_id as "eventId", k.attempts,
  (extract(epoch from k.next_attempt_at) * 1000)::float8 as "nextAttemptAt",
  (extract(epoch from t.claimed_until) * 1000)::float8 as "claimedUntil", e.body`;

type EndpointRow = {
  [Key in keyof (Omit<Endpoint, 'merchantId' | 'breaker'> & Breaker)]: (Endpoint & Breaker)[Key];
};
/**
 * A delivery that the statement tried to claim. `claimedUntil` is null if another process claimed the
 * delivery first.
 */
type DeliveryRow = {
  [Key in Exclude<keyof ClaimedDelivery, 'claimedUntil'>]: ClaimedDelivery[Key];
} & { claimedUntil: number | null };

/** Claims the rows of the CTE `candidate` that are still free. Skips locked rows instead of waiting. */
function takingCandidates(merchantId: string, claimMs: number) {
  return sql`locked as (
      select d.event_id, d.config_id
      from webhook_delivery d join candidate k on k.event_id = d.event_id and k.config_id = d.config_id
      where d.merchant_id = ${merchantId} and d.state = 'PENDING' and d.attempts = k.attempts
        and ${IS_FREE}
      order by k.sequence
      for update of d skip locked
    ), taken as (
      update webhook_delivery d set claimed_until = now() + ${claimMs} * interval '1 millisecond'
      from locked l
      where d.merchant_id = ${merchantId} and d.event_id = l.event_id and d.config_id = l.config_id
      returning d.event_id, d.config_id, d.claimed_until
    )`;
}

/** Splits the candidates of one batch, in sequence order, into sendable and unsendable deliveries. */
function batchOf(rows: readonly DeliveryRow[]): ClaimedBatch {
  const batch: ClaimedBatch = { deliveries: [], unsendable: [] };
  let isWhole = true;
  for (const { eventId, attempts, nextAttemptAt, body, claimedUntil } of rows) {
    if (claimedUntil === null) isWhole = false;
    else {
      const delivery = { eventId, attempts, nextAttemptAt, body, claimedUntil };
      (isWhole ? batch.deliveries : batch.unsendable).push(delivery);
    }
  }
  return batch;
}

/**
 * Claims the due deliveries of a stream in one statement: for every endpoint the first deliveries in sequence
 * order. Skips endpoints that are inactive, excluded or have an open breaker. A first attempt is always due;
 * `nowAt` decides for later attempts. Skips deliveries that failed three times, because the endpoint queue
 * sends those. Rule: D-54.
 */
export async function claimStream(
  db: Db,
  { merchantId, streamId }: StreamRef,
  claiming: { nowAt: number; claimMs: number; except: readonly string[] },
): Promise<StreamClaim> {
  const rows = await db.execute<
    EndpointRow & DeliveryRow & { isExcepted: boolean; isClaimed: boolean; isDue: boolean }
  >(sql`
    with line as (
      select config_id,
        coalesce(bool_or(attempts < ${HOLDS_BACK_FAILURES} and claimed_until > now()), false)
          as is_claimed,
        bool_or(attempts < ${HOLDS_BACK_FAILURES})
          and not bool_or(attempts between 1 and ${HOLDS_BACK_FAILURES - 1}
            and next_attempt_at > ${timestamp(claiming.nowAt)}) as is_due
      from webhook_delivery
      where merchant_id = ${merchantId} and stream_id = ${streamId} and state = 'PENDING'
      group by config_id
    ), endpoint as (
      select c.*, l.is_claimed, l.is_due,
        c.id = any (string_to_array(${claiming.except.join(',')}, ',')) as is_excepted
      from line l join webhook_config c on c.merchant_id = ${merchantId} and c.id = l.config_id
    ), claimable as (
      select id from endpoint
      where is_active and consecutive_failures < ${OPENS_AFTER_FAILURES} and is_due
        and not is_claimed and not is_excepted
    ), candidate as (
      select * from (
        select d.event_id, d.config_id, d.sequence, d.attempts, d.next_attempt_at,
          row_number() over (partition by d.config_id order by d.sequence) as position
        from webhook_delivery d join claimable c on c.id = d.config_id
        where d.merchant_id = ${merchantId} and d.stream_id = ${streamId}
          and d.state = 'PENDING' and d.attempts < ${HOLDS_BACK_FAILURES}
      ) d where position <= ${BATCH_SIZE}
    ), ${takingCandidates(merchantId, claiming.claimMs)}
    select ${ENDPOINT_COLUMNS}, c.is_excepted as "isExcepted", c.is_claimed as "isClaimed",
      c.is_due as "isDue", ${DELIVERY_COLUMNS}
    from endpoint c
    left join candidate k on k.config_id = c.id
    left join taken t on t.event_id = k.event_id and t.config_id = k.config_id
    left join outbox_event e on e.merchant_id = ${merchantId} and e.id = k.event_id
    order by c.id, k.sequence`);

  const claim: StreamClaim = { taken: [], left: [] };
  for (const ofEndpoint of grouped(rows, (row) => row.configId)) {
    const [first] = ofEndpoint;
    if (!first) continue;
    const endpoint = endpointOf(merchantId, first);
    const batch = batchOf(ofEndpoint);
    if (batch.deliveries.length + batch.unsendable.length > 0)
      claim.taken.push({ endpoint, batch });
    else claim.left.push({ endpoint, reason: reasonOf(first) });
  }
  return claim;
}

function reasonOf(
  row: EndpointRow & { isExcepted: boolean; isClaimed: boolean; isDue: boolean },
): LeftReason {
  if (!row.isActive) return 'inactive';
  if (row.consecutiveFailures >= OPENS_AFTER_FAILURES) return 'breaker_open';
  if (row.isExcepted) return 'excepted';
  // If the delivery was due and free when the statement began, another process has claimed it since.
  return row.isClaimed || row.isDue ? 'claimed' : 'not_due';
}

/**
 * Claims due deliveries of one endpoint in one statement, in at most `batches` batches. The batches that have been
 * due longest come first. A batch contains the first deliveries of one stream in sequence order. A delivery that
 * failed three times is a batch of its own, because later deliveries do not wait for it. A first attempt is always
 * due; `nowAt` decides for later attempts. Claims nothing if the configuration was changed after it was read, because
 * `url` and secret of `endpoint` are then outdated. Rules: D-53, D-54.
 */
export async function claimForEndpoint(
  db: Db,
  { merchantId, configId, updatedAt }: EndpointRef & Pick<Endpoint, 'updatedAt'>,
  claiming: { nowAt: number; claimMs: number; batches: number; batchSize?: number },
): Promise<ClaimedBatch[]> {
  const { batches, batchSize = BATCH_SIZE } = claiming;
  const rows = await db.execute<DeliveryRow & { batch: string }>(sql`
    with head as (
      select d.event_id, d.stream_id, d.sequence, d.attempts, d.next_attempt_at
      from webhook_delivery d
      where d.merchant_id = ${merchantId} and d.config_id = ${configId} and d.state = 'PENDING'
        and exists (
          select from webhook_config c
          where c.merchant_id = ${merchantId} and c.id = ${configId}
            and c.updated_at = ${timestamp(updatedAt)})
        and (d.attempts = 0 or d.next_attempt_at <= ${timestamp(claiming.nowAt)})
        and ${IS_FREE}
        and (d.attempts >= ${HOLDS_BACK_FAILURES} or not exists (
          select from webhook_delivery b
          where b.merchant_id = d.merchant_id and b.stream_id = d.stream_id
            and b.config_id = d.config_id and b.state = 'PENDING'
            and b.sequence < d.sequence and b.attempts < ${HOLDS_BACK_FAILURES}))
      order by d.next_attempt_at
      limit ${batches}
    ), candidate as (
      select h.event_id as batch, h.next_attempt_at as due_at, ${configId} as config_id,
        h.event_id, h.sequence, h.attempts, h.next_attempt_at
      from head h where h.attempts >= ${HOLDS_BACK_FAILURES}
      union all
      select h.stream_id, h.next_attempt_at, ${configId},
        f.event_id, f.sequence, f.attempts, f.next_attempt_at
      from head h cross join lateral (
        select d.event_id, d.sequence, d.attempts, d.next_attempt_at
        from webhook_delivery d
        where d.merchant_id = ${merchantId} and d.stream_id = h.stream_id
          and d.config_id = ${configId} and d.state = 'PENDING'
          and d.attempts < ${HOLDS_BACK_FAILURES}
        order by d.sequence
        limit ${batchSize}
      ) f where h.attempts < ${HOLDS_BACK_FAILURES}
    ), ${takingCandidates(merchantId, claiming.claimMs)}
    select k.batch, ${DELIVERY_COLUMNS}
    from candidate k
    join outbox_event e on e.merchant_id = ${merchantId} and e.id = k.event_id
    left join taken t on t.event_id = k.event_id
    order by k.due_at, k.batch, k.sequence`);
  return grouped(rows, (row) => row.batch)
    .map(batchOf)
    .filter(({ deliveries, unsendable }) => deliveries.length + unsendable.length > 0);
}

/** Returns the endpoint, also if it is inactive or deleted; null for an unknown id. */
export async function findEndpoint(db: Db, ref: EndpointRef): Promise<Endpoint | null> {
  const [row] = await db.execute<EndpointRow>(sql`
    select ${ENDPOINT_COLUMNS} from webhook_config c
    where c.merchant_id = ${ref.merchantId} and c.id = ${ref.configId}`);
  return row ? endpointOf(ref.merchantId, row) : null;
}

function endpointOf(merchantId: string, row: EndpointRow): Endpoint {
  const { consecutiveFailures, pausedUntil, failingSince } = row;
  return {
    merchantId,
    configId: row.configId,
    url: row.url,
    sealedSigner: row.sealedSigner,
    sealedPreviousSigner: row.sealedPreviousSigner,
    previousSignerUntil: row.previousSignerUntil,
    isActive: row.isActive,
    updatedAt: row.updatedAt,
    breaker: { consecutiveFailures, pausedUntil, failingSince },
  };
}

/** Groups rows by key, in the order of each key's first row. */
function grouped<Row>(rows: Iterable<Row>, keyOf: (row: Row) => string): Row[][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group) group.push(row);
    else groups.set(key, [row]);
  }
  return [...groups.values()];
}

function timestamp(at: number) {
  return sql`${new Date(at).toISOString()}::timestamptz`;
}
