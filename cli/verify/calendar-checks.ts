import type { Check } from './check.ts';
import { atImport, dateOf, ENTERED } from './sql-parts.ts';

const had = (kinds: string): string => `exists (
  select from subscription_command c where c.merchant_id = s.merchant_id
    and c.subscription_id = s.id and c.kind in (${kinds}))`;

/**
 * True if the dates cannot have moved: without an edit, pause, unpause, resume, or a retry, after which dates may be skipped.
 */
const KEEPS_DATES = `not ${had(`'edit', 'pause', 'unpause', 'resume'`)} and not exists (
  select from payment_intent ri join payment_attempt ra
    on ra.merchant_id = ri.merchant_id and ra.intent_id = ri.id
  where ri.merchant_id = s.merchant_id and ri.subscription_id = s.id
    and ra.trigger in ('automatic_retry', 'manual_retry', 'new_method', 'authentication'))`;

/** SQL for the calendar index of a cycle's date minus the number of cycles before this cycle. 0 without an import. */
const SHIFT = `coalesce(${atImport('next_index - m.cycles_charged', 's.merchant_id', 's.id')}, 0)`;

const INDEX = `i.cycle_number - 1 + ${SHIFT}`;

const CYCLES = `payment_intent i join subscription s
  on s.merchant_id = i.merchant_id and s.id = i.subscription_id and i.cycle_number is not null`;

const SILENCES = `
  select merchant_id, stream_id, type, occurred_at,
    lead(occurred_at) over (partition by merchant_id, stream_id order by sequence) as until
  from ${ENTERED} entered`;

/**
 * Checks of invariants 2 and 3 that need only Postgres: the charge times of cycles and the agreed amounts. An adopted cycle
 * has the date and amount of the gateway, because an edit of them may be lost.
 */
export const calendarChecks: readonly Check[] = [
  {
    invariant: 2,
    counted: `select count(*) as n from payment_intent where cycle_number > 1`,
    wrong: `select format('%s: cycle %s fell due at %s and was started at %s', subscription_id,
        cycle_number, due_at, created_at) as wrong
      from payment_intent where cycle_number > 1 and created_at < due_at`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from ${CYCLES} where i.cycle_number > 1 and i.adopted_at is null and ${KEEPS_DATES}`,
    wrong: `select format('%s: cycle %s fell due at %s, by its calendar at %s', s.id,
        i.cycle_number, i.due_at, ${dateOf(INDEX)}) as wrong
      from ${CYCLES} where i.cycle_number > 1 and i.adopted_at is null and ${KEEPS_DATES}
        and abs(extract(epoch from
          i.due_at at time zone 'UTC' - ${dateOf(INDEX)})) > 0.001`,
  },
  {
    invariant: 2,
    counted: `select count(*) as n from outbox_event
      where type in ('subscription.paused', 'subscription.ended')`,
    wrong: `select format('%s: an attempt on cycle %s was started at %s, after %s at %s',
        i.subscription_id, i.cycle_number, a.created_at, q.type, q.occurred_at) as wrong
      from payment_attempt a
      join payment_intent i on i.merchant_id = a.merchant_id and i.id = a.intent_id
      join (${SILENCES}) q on q.merchant_id = i.merchant_id and q.stream_id = i.subscription_id
        and q.type in ('subscription.paused', 'subscription.ended')
      where i.cycle_number is not null and a.cause->>'rule' <> 'adopted' and a.created_at > q.occurred_at
        and (q.until is null or a.created_at < q.until)`,
  },
  {
    invariant: 3,
    counted: `select count(*) as n from ${CYCLES} where i.adopted_at is null and not ${had(`'edit'`)}`,
    wrong: `select format('%s: cycle %s is %s %s, agreed were %s %s', s.id, i.cycle_number,
        i.amount_minor, i.currency, agreed.amount_minor, s.currency) as wrong
      from ${CYCLES} cross join lateral (
        select case when i.cycle_number = 1
          then coalesce((s.state->'terms'->>'upfrontAmountMinor')::bigint, s.amount_minor)
          else s.amount_minor end as amount_minor) agreed
      where i.adopted_at is null and not ${had(`'edit'`)}
        and (i.amount_minor <> agreed.amount_minor or i.currency <> s.currency)`,
  },
];
