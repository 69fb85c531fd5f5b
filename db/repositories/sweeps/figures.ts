import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { OPENS_AFTER_FAILURES } from '../../../domain/endpoint-breaker.ts';
import { HOLDS_BACK_FAILURES } from '../../../domain/delivery-schedule.ts';
import type { Db } from '../../client.ts';
import { REPAIR_KINDS, sweepCounts } from '../../schema/sweeps.ts';
import { countHeld } from './queries.ts';

/**
 * Rejects if the database is read-only, a standby, or cannot write. The commit flushes the log, and the temporary file of
 * 1 MB needs free space, as each new page of a table does. Leaves no row, and waits only for a change of the table.
 */
export async function requireWritable(db: Db): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.execute(sql`select from merchant limit 0 for update`);
    await tx.execute(sql`set local work_mem = '64kB'`);
    await tx.execute(sql`
      select count(*), pg_logical_emit_message(true, 'perennial', 'probe')
      from generate_series(1, 30000)`);
  });
}

/** Returns what an operator has to know of the rows, by the database's clock. Rejects if it accepts no writes. */
export async function readFigures(db: Db) {
  await requireWritable(db);
  return [
    ...(await readOverdue(db)),
    ...aged('perennial_outcomes_unknown', { subject: 'charge' }, await readUnknownCharges(db)),
    ...aged('perennial_outcomes_unknown', { subject: 'refund' }, await readUnknownRefunds(db)),
    ...(await readUnsent(db)),
    ...aged('perennial_reviews_open', {}, await readReviews(db)),
    figure('perennial_subscriptions_held', {}, await countHeld(db)),
    ...(await readEndpoints(db)),
    await readExpiring(db),
    ...(await readRepairs(db)),
  ];
}

const figure = <Name extends string, Labels>(name: Name, labels: Labels, value: number) => ({
  name,
  labels,
  value,
});

/** A number of records, and the time in s since the oldest one's instant; 0 without records. */
interface Waiting {
  count: number;
  oldestSeconds: number;
}

const aged = <Name extends string, Labels>(name: Name, labels: Labels, waiting: Waiting) => [
  figure(name, labels, waiting.count),
  figure(`${name}_oldest_seconds` as const, labels, waiting.oldestSeconds),
];

const NONE: Waiting = { count: 0, oldestSeconds: 0 };

async function waiting(db: Db, instant: string, from: SQL): Promise<Waiting> {
  const [row] = await db.execute<{ [Key in keyof Waiting]: number }>(
    sql`select ${countAndAge(instant)} from ${from}`,
  );
  return row ?? NONE;
}

const countAndAge = (instant: string) =>
  sql.raw(
    `count(*)::int as count, coalesce(extract(epoch from now() - min(${instant})), 0)::float8 as "oldestSeconds"`,
  );

/** After an outage, reading all of them could exceed the time limit of the figures. */
const OVERDUE_MAX = 10_000;

/**
 * The first {@link OVERDUE_MAX} due steps without an open attempt, except on a test clock and of held subscriptions.
 * `wake_at` includes the delay by which a worker spreads renewals.
 */
async function readOverdue(db: Db) {
  const rows = await db.execute<{ step: string; count: number; oldestSeconds: number }>(sql`
    select case when status in ('TRIALING', 'ACTIVE', 'UNPAID') and state ->> 'cancelAtPeriodEnd' = 'false'
      then 'charge' else 'other' end as step, ${countAndAge('wake_at')}
    from (
      select status, state, wake_at from subscription
      where wake_at < now() and test_clock_id is null and held_at is null
        and state ->> 'openAttempt' is null
      order by wake_at limit ${OVERDUE_MAX}) due
    group by step`);
  return ['charge', 'other'].flatMap((step) =>
    aged('perennial_renewals_overdue', { step }, rows.find((row) => row.step === step) ?? NONE),
  );
}

/**
 * A charge that was sent a minute ago and has no outcome yet is unknown: its worker has died or hangs. The list of all open
 * states lets Postgres use the index of open attempts.
 */
function readUnknownCharges(db: Db): Promise<Waiting> {
  return waiting(
    db,
    'coalesce(unanswered_at, sent_at[1])',
    sql`payment_attempt where state in ('SENDING', 'UNSENT', 'UNKNOWN', 'REVIEW')
      and state in ('SENDING', 'UNKNOWN') and (
      unanswered_at is not null
      or (state = 'SENDING' and sent_at[cardinality(sent_at)] < now() - interval '1 minute'))`,
  );
}

/** `account`: the gateway refuses every charge of a merchant's account. `gateway`: it is not reached, or too busy. */
async function readUnsent(db: Db) {
  const rows = await db.execute<{ refused: boolean; count: number; oldestSeconds: number }>(sql`
    select is_account_refused as refused, ${countAndAge('unanswered_at')}
    from payment_attempt where state in ('SENDING', 'UNSENT', 'UNKNOWN', 'REVIEW')
      and state = 'UNSENT' group by is_account_refused`);
  return [true, false].flatMap((refused) =>
    aged(
      'perennial_charges_unsent',
      { by: refused ? 'account' : 'gateway' },
      rows.find((row) => row.refused === refused) ?? NONE,
    ),
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

function readReviews(db: Db): Promise<Waiting> {
  return waiting(db, 'since_at', sql`payment_review where closed_at is null and outcome is null`);
}

/**
 * A due delivery behind an earlier one of its stream that waits for its own next attempt is held back. An open breaker
 * sends one attempt at a time, so its endpoint's deliveries count as its own trouble. Deliveries that are sent again do not count.
 */
async function readEndpoints(db: Db) {
  const [row] = await db.execute<{
    oldestDueSeconds: number;
    failing: number;
    disabled: number;
  }>(sql`
    select coalesce(max(extract(epoch from now() - due.at)), 0)::float8 as "oldestDueSeconds",
      count(*) filter (where c.is_active and c.consecutive_failures >= ${HOLDS_BACK_FAILURES})::int as failing,
      count(*) filter (where c.deactivated_reason is not null)::int as disabled
    from webhook_config c
    left join lateral (
      select d.next_attempt_at as at from webhook_delivery d
      where c.is_active and c.consecutive_failures < ${OPENS_AFTER_FAILURES}
        and d.merchant_id = c.merchant_id and d.config_id = c.id and d.state = 'PENDING'
        and d.next_attempt_at < now() and not d.is_resent
        and not exists (
          select from webhook_delivery b
          where b.merchant_id = d.merchant_id and b.stream_id = d.stream_id
            and b.config_id = d.config_id and b.state = 'PENDING' and not b.is_resent
            and b.sequence < d.sequence and b.attempts < ${HOLDS_BACK_FAILURES}
            and b.next_attempt_at >= now())
      order by d.next_attempt_at limit 1) due on true
    where c.deleted_at is null`);
  return [
    figure('perennial_webhook_oldest_due_seconds', {}, row?.oldestDueSeconds ?? 0),
    figure('perennial_webhook_endpoints_failing', {}, row?.failing ?? 0),
    figure('perennial_webhook_endpoints_disabled', {}, row?.disabled ?? 0),
  ];
}

/** Without the time after a rotation that a merchant needs to change to the new credential. */
async function readExpiring(db: Db) {
  const [row] = await db.execute<{ count: number }>(sql`
    select count(*)::int as count from credential
    where revoked_at is null and expires_at > now() and expires_at < now() + interval '7 days'
      and last_used_at > greatest(now() - interval '7 days', replaced_at + interval '1 hour')`);
  return figure('perennial_credentials_expiring', {}, row?.count ?? 0);
}

async function readRepairs(db: Db) {
  const rows = await db.select().from(sweepCounts);
  return REPAIR_KINDS.map((kind) => {
    const repaired = rows.find((row) => row.kind === kind)?.repaired ?? 0;
    return figure('perennial_repairs_total', { kind }, repaired);
  });
}

/** The events with which a subscription enters a status. */
const ENTERS = sql`('subscription.created', 'subscription.trialing', 'subscription.active',
  'subscription.unpaid', 'subscription.paused', 'subscription.ended')`;

/**
 * Contradictions among the rows of the last two minutes' events, by the invariant's number in `npm run verify`. One
 * statement reads one snapshot, in which the rows of each transaction agree. Takes 30 µs an event, more for old rows.
 */
export async function readViolations(db: Db) {
  const rows = await db.execute<{ invariant: string; violated: number }>(sql`
    with recent as materialized (
      select merchant_id, stream_id, sequence, type,
        body::json ->> 'intentId' as intent_id, body::json ->> 'status' as status
      from outbox_event
      where inserted_at > now() - interval '2 minutes' and body_deleted_at is null)
    select '1' as invariant, count(*)::int as violated
    from recent e join payment_intent i on i.merchant_id = e.merchant_id and i.id = e.intent_id
    where e.type = 'intent.success' and 1 <> (
      select count(*) from payment_attempt a where a.merchant_id = i.merchant_id and a.intent_id = i.id
        and a.state = 'SUCCEEDED' and a.amount_minor = i.amount_minor and a.currency = i.currency)
    union all select '4', count(*)::int
    from recent e join subscription s on s.merchant_id = e.merchant_id and s.id = e.stream_id
    where e.type = 'subscription.cycle_charged' and s.cycles_charged <> (
      select count(*) from payment_intent i where i.merchant_id = s.merchant_id
        and i.subscription_id = s.id and i.cycle_number is not null
        and i.status in ('SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED'))
      + coalesce((select m.cycles_charged from subscription_import m
        where m.merchant_id = s.merchant_id and m.subscription_id = s.id), 0)
    union all select '5', count(*)::int
    from recent e join event_stream s on s.merchant_id = e.merchant_id and s.id = e.stream_id
    where e.sequence > s.last_sequence or (e.sequence > 1 and not exists (
      select from outbox_event b where b.merchant_id = e.merchant_id and b.stream_id = e.stream_id
        and b.sequence = e.sequence - 1))
    union all select '8', count(*)::int
    from recent e join subscription s on s.merchant_id = e.merchant_id and s.id = e.stream_id
    where e.type in ${ENTERS} and e.status <> s.status and not exists (
      select from outbox_event n where n.merchant_id = e.merchant_id and n.stream_id = e.stream_id
        and n.sequence > e.sequence and n.type in ${ENTERS})
    union all select '10', count(*)::int
    from recent e join payment_intent i on i.merchant_id = e.merchant_id and i.id = e.intent_id
    where e.type = 'intent.refunded' and i.refunded_minor <> (
      select coalesce(sum(r.amount_minor), 0) from refund r where r.merchant_id = i.merchant_id
        and r.intent_id = i.id and r.state = 'SUCCEEDED' and r.late_attempt_id is null)`);
  return rows.map(({ invariant, violated }) =>
    figure('perennial_invariants_violated', { invariant }, violated),
  );
}
