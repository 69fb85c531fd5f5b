import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { OPENS_AFTER_FAILURES } from '../../../domain/endpoint-breaker.ts';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import type { Db } from '../../client.ts';
import { REPAIR_KINDS, sweepCounts } from '../../schema/sweeps.ts';
import { countHeld } from './queries.ts';

/**
 * Rejects if the database accepts no writes. The statement locks no row, but Postgres refuses it in a read-only session
 * and on a standby. It waits for no statement except a change of the table.
 */
export async function requireWritable(db: Db): Promise<void> {
  await db.execute(sql`select from merchant limit 0 for update`);
}

/** A number of records, and the time in s since the oldest one's instant; 0 without records. */
export interface Waiting {
  count: number;
  oldestSeconds: number;
}

/** What an operator has to know of the rows, by the database's clock. Rejects if the database accepts no writes. */
export interface Figures {
  /** Due steps of subscriptions without an open attempt, except on a test clock and held ones. */
  overdue: { charge: Waiting; other: Waiting };
  /** Charges and refunds whose latest request was not answered. A charge that waits for its payer is none. */
  unknown: { charge: Waiting; refund: Waiting };
  reviews: Waiting;
  held: number;
  endpoints: { oldestDueSeconds: number; open: number; disabled: number };
  /** By kind; a kind without a repair is 0. */
  repairs: Record<string, number>;
}

export async function readFigures(db: Db): Promise<Figures> {
  await requireWritable(db);
  return {
    overdue: await readOverdue(db),
    unknown: { charge: await readUnknownCharges(db), refund: await readUnknownRefunds(db) },
    reviews: await waiting(
      db,
      'since_at',
      sql`payment_review where closed_at is null and outcome is null`,
    ),
    held: await countHeld(db),
    endpoints: await readEndpoints(db),
    repairs: await readRepairs(db),
  };
}

async function waiting(db: Db, instant: string, from: SQL): Promise<Waiting> {
  const [row] = await db.execute<{ count: number; oldestSeconds: number }>(
    sql`select ${countAndAge(instant)} from ${from}`,
  );
  return row ?? { count: 0, oldestSeconds: 0 };
}

/** `wake_at` includes the delay by which a worker spreads renewals. */
async function readOverdue(db: Db): Promise<Figures['overdue']> {
  const due = await db.execute<{ isCharge: boolean; count: number; oldestSeconds: number }>(sql`
    select ${isCharge()} as "isCharge", ${countAndAge('wake_at')}
    from subscription
    where wake_at < now() and test_clock_id is null and held_at is null
      and state ->> 'openAttempt' is null
    group by 1`);
  const of = (charge: boolean): Waiting => {
    const { count = 0, oldestSeconds = 0 } = due.find((row) => row.isCharge === charge) ?? {};
    return { count, oldestSeconds };
  };
  return { charge: of(true), other: of(false) };
}

const isCharge = () =>
  sql`(status in ('TRIALING', 'ACTIVE', 'UNPAID') and state ->> 'cancelAtPeriodEnd' = 'false')`;

/** A charge that was sent a minute ago and has no outcome yet is unknown: its worker has died or hangs. */
function readUnknownCharges(db: Db): Promise<Waiting> {
  return waiting(
    db,
    'sent_at[1]',
    sql`payment_attempt where state in ('SENDING', 'UNKNOWN', 'REVIEW') and state <> 'REVIEW' and (
      unanswered_at is not null
      or (state = 'SENDING' and sent_at[cardinality(sent_at)] < now() - interval '1 minute'))`,
  );
}

function readUnknownRefunds(db: Db): Promise<Waiting> {
  return waiting(
    db,
    'coalesce(first_sent_at, created_at)',
    sql`refund where state in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW') and (
      state = 'UNKNOWN' or (state = 'SENDING' and updated_at < now() - interval '1 minute'))`,
  );
}

/**
 * A due delivery behind an earlier one of its stream that waits for its own next attempt is held back. An open breaker
 * sends one attempt at a time, so its endpoint's deliveries count as its own trouble.
 */
async function readEndpoints(db: Db): Promise<Figures['endpoints']> {
  const [row] = await db.execute<{ oldestDueSeconds: number; open: number; disabled: number }>(sql`
    select coalesce(max(extract(epoch from now() - due.at)), 0)::float8 as "oldestDueSeconds",
      count(*) filter (where c.is_active and c.consecutive_failures >= ${OPENS_AFTER_FAILURES})::int as open,
      count(*) filter (where c.deactivated_reason is not null)::int as disabled
    from webhook_config c
    left join lateral (
      select d.next_attempt_at as at from webhook_delivery d
      where c.is_active and c.consecutive_failures < ${OPENS_AFTER_FAILURES}
        and d.merchant_id = c.merchant_id and d.config_id = c.id and d.state = 'PENDING'
        and d.next_attempt_at < now()
        and not exists (
          select from webhook_delivery b
          where b.merchant_id = d.merchant_id and b.stream_id = d.stream_id
            and b.config_id = d.config_id and b.state = 'PENDING'
            and b.sequence < d.sequence and b.attempts < ${HOLDS_BACK_FAILURES}
            and b.next_attempt_at >= now())
      order by d.next_attempt_at limit 1) due on true
    where c.deleted_at is null`);
  return row ?? { oldestDueSeconds: 0, open: 0, disabled: 0 };
}

async function readRepairs(db: Db): Promise<Record<string, number>> {
  const rows = await db.select().from(sweepCounts);
  return Object.fromEntries([
    ...REPAIR_KINDS.map((kind) => [kind, 0]),
    ...rows.map(({ kind, repaired }) => [kind, repaired]),
  ]);
}

const countAndAge = (instant: string) =>
  sql.raw(
    `count(*)::int as count, coalesce(extract(epoch from now() - min(${instant})), 0)::float8 as "oldestSeconds"`,
  );
