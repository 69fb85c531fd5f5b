import { and, asc, eq, lt, lte, or, sql } from 'drizzle-orm';
import { HOLDS_BACK_FAILURES } from '../../domain/delivery-schedule.ts';
import type { Db } from '../client.ts';
import { outboxEvents } from '../schema/outbox-events.ts';
import { webhookConfigs } from '../schema/webhook-configs.ts';
import { webhookDeliveries } from '../schema/webhook-deliveries.ts';
import type { DeliveryState } from '../schema/webhook-deliveries.ts';

export interface StreamRef {
  merchantId: string;
  streamId: string;
}

/** A stream on its way to one configuration: what a lease is held on. */
export interface LaneRef extends StreamRef {
  configId: string;
}

/** What is pending in one lane. */
export interface LaneOverview {
  configId: string;
  pending: number;
  /** Milliseconds until an attempt is due; 0 when one is. */
  dueInMs: number;
  /** Milliseconds that somebody (also the caller) still holds the lane; null when nobody does. */
  heldForMs: number | null;
  /** True when this call took the lane. */
  isTaken: boolean;
}

/**
 * Looks at everything pending of a stream and, in the same statement, takes the lanes in which
 * something is due and that nobody holds, except those named. A lease ends by itself after
 * `leaseMs` of the database's time. Dueness is judged at `nowAt`. Rule: D-54.
 */
export async function takeDueLanes(
  db: Db,
  stream: StreamRef,
  taking: { owner: string; leaseMs: number; nowAt: number; except: readonly string[] | 'all' },
): Promise<LaneOverview[]> {
  const nowAt = sql`${new Date(taking.nowAt).toISOString()}::timestamptz`;
  const isTakeable =
    taking.except === 'all'
      ? sql`false`
      : sql`config_id not in (${sql.join(
          ['', ...taking.except].map((configId) => sql`${configId}`),
          sql`, `,
        )})`;
  // Later events wait behind one that failed once or twice, and have made no attempt themselves.
  const lanes = await db.execute<{ [Key in keyof LaneOverview]: LaneOverview[Key] }>(sql`
    with pending as (
      select config_id, count(*)::int as pending,
        case
          when bool_or(attempts = 0)
            and not bool_or(attempts between 1 and ${HOLDS_BACK_FAILURES - 1}) then 0
          else greatest(0, extract(epoch from
            min(next_attempt_at) filter (where attempts > 0) - ${nowAt}) * 1000)::float8
        end as due_in_ms
      from webhook_delivery
      where merchant_id = ${stream.merchantId} and stream_id = ${stream.streamId}
        and state = 'PENDING'
      group by config_id
    ), taken as (
      insert into delivery_lease (merchant_id, stream_id, config_id, owner, until)
      select ${stream.merchantId}, ${stream.streamId}, config_id, ${taking.owner}::uuid,
        now() + ${taking.leaseMs} * interval '1 millisecond'
      from pending where due_in_ms = 0 and ${isTakeable}
      order by config_id
      on conflict (merchant_id, stream_id, config_id)
        do update set owner = excluded.owner, until = excluded.until
        where delivery_lease.until <= now()
      returning config_id
    )
    select p.config_id as "configId", p.pending, p.due_in_ms as "dueInMs",
      (extract(epoch from l.until - now()) * 1000)::float8 as "heldForMs",
      t.config_id is not null as "isTaken"
    from pending p
    left join taken t on t.config_id = p.config_id
    left join delivery_lease l on l.merchant_id = ${stream.merchantId}
      and l.stream_id = ${stream.streamId} and l.config_id = p.config_id and l.until > now()
    order by p.config_id`);
  return [...lanes];
}

export interface PendingDelivery {
  eventId: string;
  attempts: number;
  nextAttemptAt: number;
  body: string;
}

export interface LaneBatch {
  config: Pick<
    typeof webhookConfigs.$inferSelect,
    | 'url'
    | 'sealedSigner'
    | 'sealedPreviousSigner'
    | 'previousSignerUntil'
    | 'isActive'
    | 'failingSince'
  >;
  /** In sequence order; those that neither are due nor hold anything back are left out. */
  deliveries: PendingDelivery[];
}

/** The next deliveries of a lane and where they go; null when nothing is there to look at. */
export async function readLane(
  db: Db,
  lane: LaneRef,
  reading: { nowAt: number; limit: number },
): Promise<LaneBatch | null> {
  const rows = await db
    .select({
      config: {
        url: webhookConfigs.url,
        sealedSigner: webhookConfigs.sealedSigner,
        sealedPreviousSigner: webhookConfigs.sealedPreviousSigner,
        previousSignerUntil: webhookConfigs.previousSignerUntil,
        isActive: webhookConfigs.isActive,
        failingSince: webhookConfigs.failingSince,
      },
      delivery: {
        eventId: webhookDeliveries.eventId,
        attempts: webhookDeliveries.attempts,
        nextAttemptAt: webhookDeliveries.nextAttemptAt,
        body: outboxEvents.body,
      },
    })
    .from(webhookDeliveries)
    .innerJoin(
      outboxEvents,
      and(
        eq(outboxEvents.merchantId, webhookDeliveries.merchantId),
        eq(outboxEvents.id, webhookDeliveries.eventId),
      ),
    )
    .innerJoin(
      webhookConfigs,
      and(
        eq(webhookConfigs.merchantId, webhookDeliveries.merchantId),
        eq(webhookConfigs.id, webhookDeliveries.configId),
      ),
    )
    .where(
      and(
        isPendingIn(lane),
        or(
          lt(webhookDeliveries.attempts, HOLDS_BACK_FAILURES),
          lte(webhookDeliveries.nextAttemptAt, reading.nowAt),
        ),
      ),
    )
    .orderBy(asc(webhookDeliveries.sequence))
    .limit(reading.limit);
  const [first] = rows;
  return first ? { config: first.config, deliveries: rows.map((row) => row.delivery) } : null;
}

/** What an attempt changed. */
export interface RecordedAttempt {
  eventId: string;
  /** Attempts made, this one included. */
  attempts: number;
  state: DeliveryState;
  nextAttemptAt: number;
  httpStatus: number | null;
  error: string | null;
  settledAt: number | null;
}

/**
 * Stores what became of attempts. Each counts once: one that somebody else recorded in the meantime,
 * or whose delivery is settled, changes nothing.
 */
export async function recordAttempts(
  db: Db,
  lane: LaneRef,
  attempts: readonly RecordedAttempt[],
): Promise<void> {
  if (attempts.length > 0) await db.execute(recording(lane, attempts));
}

/** Stores attempts as {@link recordAttempts} does and gives the lane free, in one statement. */
export async function releaseLane(
  db: Db,
  lane: LaneRef,
  owner: string,
  attempts: readonly RecordedAttempt[],
): Promise<void> {
  const release = sql`delete from delivery_lease
    where merchant_id = ${lane.merchantId} and stream_id = ${lane.streamId}
      and config_id = ${lane.configId} and owner = ${owner}::uuid`;
  await db.execute(
    attempts.length === 0
      ? release
      : sql`with recorded as (${recording(lane, attempts)}) ${release}`,
  );
}

function recording(lane: LaneRef, attempts: readonly RecordedAttempt[]) {
  const rows = attempts.map(
    (attempt) => sql`(${attempt.eventId}, ${attempt.attempts}::int, ${attempt.state},
      ${toTimestamp(attempt.nextAttemptAt)}::timestamptz, ${attempt.httpStatus}::int,
      ${attempt.error}, ${toTimestamp(attempt.settledAt)}::timestamptz)`,
  );
  return sql`update webhook_delivery d
    set attempts = r.attempts, state = r.state, next_attempt_at = r.next_attempt_at,
      last_http_status = r.http_status, last_error = r.error, settled_at = r.settled_at
    from (values ${sql.join(rows, sql`, `)})
      as r (event_id, attempts, state, next_attempt_at, http_status, error, settled_at)
    where d.merchant_id = ${lane.merchantId} and d.config_id = ${lane.configId}
      and d.event_id = r.event_id and d.state = 'PENDING' and d.attempts = r.attempts - 1`;
}

/** How far behind its time a delivery must be before a sweep thinks that nobody cares for it. */
const STALLED_AFTER_MS = 30_000;

/**
 * Streams with a delivery that has been due for more than 30 s, is not waiting behind an earlier
 * one's next attempt, and that nobody holds; any of them, so that many that cannot be helped do not
 * keep the sweep from the others. `nowAt` is real time.
 */
export async function stalledStreams(db: Db, nowAt: number, limit: number): Promise<StreamRef[]> {
  const before = sql`${toTimestamp(nowAt - STALLED_AFTER_MS)}::timestamptz`;
  const streams = await db.execute<{ merchantId: string; streamId: string }>(sql`
    select d.merchant_id as "merchantId", d.stream_id as "streamId"
    from webhook_delivery d
    where d.state = 'PENDING' and d.next_attempt_at < ${before}
      and not exists (
        select from delivery_lease l
        where l.merchant_id = d.merchant_id and l.stream_id = d.stream_id
          and l.config_id = d.config_id and l.until > now())
      and not exists (
        select from webhook_delivery b
        where b.state = 'PENDING' and b.merchant_id = d.merchant_id
          and b.stream_id = d.stream_id and b.config_id = d.config_id
          and b.sequence < d.sequence and b.attempts < ${HOLDS_BACK_FAILURES}
          and b.next_attempt_at >= ${before})
    group by d.merchant_id, d.stream_id
    order by random()
    limit ${limit}`);
  return [...streams];
}

function isPendingIn(lane: LaneRef) {
  return and(
    eq(webhookDeliveries.merchantId, lane.merchantId),
    eq(webhookDeliveries.streamId, lane.streamId),
    eq(webhookDeliveries.configId, lane.configId),
    eq(webhookDeliveries.state, 'PENDING'),
  );
}

function toTimestamp(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
