import { NOTICE_TYPES } from '../../domain/events.ts';
import type { Check } from './check.ts';
import { atImport, dateOf, ENTERED, PAID_BEFORE } from './sql-parts.ts';

const DUE_AT = dateOf(`(state->>'nextIndex')::int`);

/** SQL for the subscription's business time: the time of its test clock, or else the present time. */
const OWN_NOW = `coalesce(clock_reached_at, now()) at time zone 'UTC'`;

/** The jitter, and in real time 5 minutes for a restart. A test clock executes every step before an instant. */
const LATE = `case when clock_reached_at is null then interval '5 minutes' else interval '0' end
  + coalesce((state->>'jitterMs')::bigint, 0) * interval '1 millisecond'`;

/** SQL for the UTC timestamp of an instant. `path` is an SQL expression for the instant's epoch ms. */
const instantAt = (path: string): string =>
  `to_timestamp((${path})::bigint / 1000.0) at time zone 'UTC'`;

/** SQL for the instant before which the next charge is not made, because of its notices; null without such a notice. */
const NEXT_CHARGE_FROM = `(select max(to_timestamp((given->>'chargeFromAt')::bigint / 1000.0)) at time zone 'UTC'
  from json_array_elements(state->'givenNotices') given where ${instantAt(`given->>'chargeAt'`)} = ${DUE_AT}
    and (given->>'notice' <> 'subscription.amount_changing'
      or given->>'amountMinor' = coalesce(state->'owed'->>'amountMinor', state->'terms'->>'amountMinor')))`;

const ENDS_WITH_PERIOD = `coalesce((state->>'cancelAtPeriodEnd')::boolean, false)`;

/** UNPAID, or TRIALING or ACTIVE with a planned retry. */
const IS_RETRIED = `(status = 'UNPAID' or (status in ('TRIALING', 'ACTIVE') and state->'owed'->>'nextRetryAt' is not null))`;

const STATUS_CHANGES = `
  select stream_id, status, lag(status, 1, ${atImport('status', 'entered.merchant_id', 'entered.stream_id')})
    over (partition by stream_id order by sequence) as before
  from ${ENTERED} entered`;

const NOTICE_EVENTS = `
  select stream_id, type from outbox_event where type in (${NOTICE_TYPES.map((type) => `'${type}'`).join()})`;

/** SQL for the charges that are not made before an instant: of a date, or of the amount to which an edit raised it. */
const CHARGES_FROM = `
  select merchant_id, subscription_id, (facts->>'chargeAt')::bigint as charge_at,
    case facts->>'notice' when 'subscription.amount_changing' then (facts->>'amountMinor')::bigint end as raised_to,
    (array_agg((facts->>'chargeFromAt')::bigint order by version desc))[1] as until
  from subscription_entry where kind = 'notice_given' and facts->>'notice' <> 'payment_method.expiring'
  group by 1, 2, 3, 4`;

/** SQL for the given notices. A notice may be given again after a notice of another date. */
const GIVEN = `
  select merchant_id, subscription_id, notice, charge_at, count(*) as times, max(at) as latest_at,
    max(max(until)) over (partition by merchant_id, subscription_id, charge_at) as until
  from (
    select *, sum(is_new_date) over (partition by merchant_id, subscription_id order by version) as date_number
    from (
      select merchant_id, subscription_id, version, at, facts->>'notice' as notice, facts->>'amountMinor' as amount,
        facts->>'dueAt' as due_at, (facts->>'chargeAt')::bigint as charge_at, (facts->>'chargeFromAt')::bigint as until,
        (facts->>'chargeAt' is distinct from lag(facts->>'chargeAt')
          over (partition by merchant_id, subscription_id order by version))::int as is_new_date
      from subscription_entry where kind = 'notice_given') entry) notice
  group by 1, 2, 3, 4, amount, due_at, date_number`;

/** Invariants 2 (cycles), 4 (remaining cycles), 8 (changes of status, ledger) and 9 (readable states). */
export const subscriptionChecks: readonly Check[] = [
  {
    invariant: 8,
    counted: `select count(*) as n from subscription`,
    wrong: `select format('%s: %s', id, problem) as wrong from underived order by id`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from subscription where status in ('TRIALING', 'ACTIVE')`,
    wrong: `select format('%s is %s and cycle %s was due at %s', id, status, cycles_charged + 1, ${DUE_AT}) as wrong
      from subscription
      where status in ('TRIALING', 'ACTIVE') and state->>'openAttempt' is null
        and state->'owed'->>'nextRetryAt' is null and not ${ENDS_WITH_PERIOD}
        and greatest(${DUE_AT}, ${NEXT_CHARGE_FROM}) < ${OWN_NOW} - (${LATE})`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from subscription where ${IS_RETRIED}`,
    wrong: `select format('%s is %s and its retry was due at %s', id, status,
        to_timestamp((state->'owed'->>'nextRetryAt')::bigint / 1000.0)) as wrong
      from subscription
      where ${IS_RETRIED} and state->>'openAttempt' is null
        and (status = 'UNPAID' or not ${ENDS_WITH_PERIOD})
        and ${instantAt(`state->'owed'->>'nextRetryAt'`)} < ${OWN_NOW} - (${LATE})`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from subscription where status in ('TRIALING', 'ACTIVE')`,
    wrong: `select format('%s is %s, but it was cancelled at the end of its period, %s', id, status,
        to_timestamp((state->>'currentPeriodEndAt')::bigint / 1000.0)) as wrong
      from subscription
      where status in ('TRIALING', 'ACTIVE') and state->>'openAttempt' is null and ${ENDS_WITH_PERIOD}
        and coalesce(${instantAt(`state->>'currentPeriodEndAt'`)}, ${DUE_AT}) < ${OWN_NOW} - (${LATE})`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from subscription where status in ('PAUSED', 'ACTIVE')`,
    wrong: `select format('%s is PAUSED, but its pause was to end at %s', id,
        to_timestamp((state->>'resumeAt')::bigint / 1000.0)) as wrong
      from subscription
      where status = 'PAUSED' and state->>'openAttempt' is null
        and ${instantAt(`state->>'resumeAt'`)} < ${OWN_NOW} - (${LATE})`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from payment_intent where cycle_number is not null`,
    wrong: `select format('%s: cycle %s follows cycle %s', subscription_id, cycle_number, before) as wrong
      from (
        select subscription_id, cycle_number,
          lag(cycle_number, 1, coalesce(${atImport('cycles_charged', 'i.merchant_id', 'i.subscription_id')}, 0))
            over (partition by merchant_id, subscription_id order by cycle_number) as before
        from payment_intent i where cycle_number is not null) cycles
      where cycle_number <> before + 1`,
  },
  {
    invariant: 4,
    counted: `select count(*) as n from subscription`,
    wrong: `select format('%s has %s paid cycles in its row, %s paid intents and imported cycles', s.id,
        s.cycles_charged, count(i.id) + ${PAID_BEFORE}) as wrong
      from subscription s left join payment_intent i
        on i.merchant_id = s.merchant_id and i.subscription_id = s.id and i.cycle_number is not null
          and i.status in ('SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED')
      group by s.merchant_id, s.id, s.cycles_charged having count(i.id) + ${PAID_BEFORE} <> s.cycles_charged`,
  },
  {
    invariant: 4,
    counted: `select count(*) as n from subscription`,
    wrong: `select format('%s: its columns have %s, %s of %s cycles; its state has %s, %s of %s', id,
        status, cycles_charged, cycle_count, state->>'status', state->>'cyclesCharged',
        state->'terms'->>'cycleCount') as wrong
      from subscription
      where status <> state->>'status' or version <> (state->>'version')::int
        or cycles_charged <> (state->>'cyclesCharged')::int
        or cycle_count <> (state->'terms'->>'cycleCount')::int`,
  },
  {
    invariant: 8,
    counted: `select count(*) as n from subscription`,
    wrong: `select format('%s is %s, but its last event says %s', s.id, s.status,
        coalesce(last_event.status, ${atImport('status', 's.merchant_id', 's.id')}, 'nothing')) as wrong
      from subscription s left join (
        select distinct on (merchant_id, stream_id) merchant_id, stream_id, status
        from ${ENTERED} entered order by merchant_id, stream_id, sequence desc) last_event
        on last_event.merchant_id = s.merchant_id and last_event.stream_id = s.id
      where coalesce(last_event.status, ${atImport('status', 's.merchant_id', 's.id')})
        is distinct from s.status`,
  },
  {
    invariant: 8,
    counted: `select count(*) as n from (${STATUS_CHANGES}) changes`,
    wrong: `select format('%s went from %s to %s', stream_id, coalesce(before, 'nothing'), status) as wrong
      from (${STATUS_CHANGES}) changes
      where not case when before is null then status = 'CREATED' else (before, status) in (
        ('CREATED', 'ACTIVE'), ('CREATED', 'TRIALING'), ('CREATED', 'ENDED'),
        ('TRIALING', 'ACTIVE'), ('TRIALING', 'UNPAID'), ('TRIALING', 'PAUSED'), ('TRIALING', 'ENDED'),
        ('ACTIVE', 'UNPAID'), ('ACTIVE', 'PAUSED'), ('ACTIVE', 'ENDED'),
        ('UNPAID', 'ACTIVE'), ('UNPAID', 'PAUSED'), ('UNPAID', 'ENDED'),
        ('PAUSED', 'ACTIVE'), ('PAUSED', 'UNPAID'), ('PAUSED', 'ENDED')) end`,
  },
  {
    invariant: 8,
    counted: `select count(*) as n from subscription_command`,
    wrong: `select format('%s: its command %s (%s) has no result, and no attempt is open for it', c.subscription_id,
        c.command_id, c.kind) as wrong
      from subscription_command c join subscription s
        on s.merchant_id = c.merchant_id and s.id = c.subscription_id
      where c.result is null and s.state->'openAttempt'->>'commandId' is distinct from c.command_id`,
  },
  {
    invariant: 8,
    counted: `select count(*) as n from subscription_entry where kind = 'notice_given'`,
    wrong: `select format('%s: %s was given %s times for the charge of %s, or after it', subscription_id, notice, times,
        to_timestamp(charge_at / 1000.0)) as wrong
      from (${GIVEN}) given
      where times > 1 or latest_at >= to_timestamp(greatest(charge_at, until) / 1000.0)`,
  },
  {
    invariant: 8,
    counted: `select count(*) as n from (${CHARGES_FROM}) charge`,
    wrong: `select format('%s: its charge of %s was made before the notice had its days', a.id,
        to_timestamp(charge.charge_at / 1000.0)) as wrong
      from (${CHARGES_FROM}) charge
      join payment_intent i on i.merchant_id = charge.merchant_id and i.subscription_id = charge.subscription_id
      join payment_attempt a on a.merchant_id = i.merchant_id and a.intent_id = i.id
      where a.trigger = 'scheduled' and (a.cause->>'dueAt')::bigint = charge.charge_at
        and a.amount_minor = coalesce(charge.raised_to, a.amount_minor)
        and a.created_at < to_timestamp(charge.until / 1000.0)`,
  },
  {
    invariant: 8,
    counted: `select count(*) as n from (${NOTICE_EVENTS}) events`,
    wrong: `select format('%s: %s entries and %s events say %s', coalesce(e.id, n.id), coalesce(n.entries, 0),
        coalesce(e.events, 0), coalesce(e.type, n.type)) as wrong
      from (select stream_id as id, type, count(*) as events from (${NOTICE_EVENTS}) events group by 1, 2) e
      full join (select subscription_id as id, facts->>'notice' as type, count(*) as entries
        from subscription_entry where kind = 'notice_given' group by 1, 2) n
        on n.id = e.id and n.type = e.type
      where e.events is distinct from n.entries`,
  },
  {
    invariant: 9,
    counted: `select count(*) as n from public.subscription`,
    wrong: `select format('the recorded state of %s cannot be read: %s', id, problem) as wrong
      from unreadable order by id`,
  },
];
