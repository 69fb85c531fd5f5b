import type { Check } from './check.ts';
import { REFUNDED, REFUNDS_IN_SNAPSHOT } from './sql-parts.ts';

/** SQL for our refunds, each with the name of the gateway of its charge. */
const REFUNDS = `(select distinct on (r.merchant_id, r.id) r.*, a.gateway
  from refund r join payment_attempt a on a.merchant_id = r.merchant_id
    and a.intent_id = r.intent_id and a.gateway_charge_id = r.gateway_charge_id
  order by r.merchant_id, r.id)`;

const IN_BOOK = `${REFUNDS} r join book_gateway g on g.gateway = r.gateway
  and coalesce(r.first_sent_at, r.updated_at) >= g.from_at`;

/** SQL that is true if a manual review settled the refund. The refund at the gateway may then have another key. */
const BY_PERSON = `exists (select from payment_review v
  where v.merchant_id = r.merchant_id and v.subject_id = r.id and v.outcome is not null)`;

/** SQL for the events of refunds, without events whose body a sweep has deleted. */
const TOLD = `(select e.merchant_id, e.type, e.body::json->>'refundId' as refund_id,
    (e.body::json->>'refundedAmount')::bigint as amount_minor
  from outbox_event e
  where e.type in ('intent.refunded', 'intent.refund_failed') and e.body_deleted_at is null)`;

/** Invariant 10. An open refund may differ. A refund that failed after it had succeeded moved no money. */
export const refundChecks: readonly Check[] = [
  {
    invariant: 10,
    counted: `select count(*) as n from payment_intent where refunded_minor > 0`,
    wrong: `select format('%s: its row has %s refunded, its refunds %s', i.id,
        i.refunded_minor, coalesce(sum(r.amount_minor), 0)) as wrong
      from payment_intent i left join refund r
        on r.merchant_id = i.merchant_id and r.intent_id = i.id and r.state = 'SUCCEEDED'
          and r.late_attempt_id is null
      group by i.merchant_id, i.id, i.refunded_minor
      having i.refunded_minor <> coalesce(sum(r.amount_minor), 0)`,
  },
  {
    invariant: 10,
    needs: 'gateway',
    counted: `select count(distinct (gateway, charge_id)) as n from book_refund where status <> 'failed'`,
    wrong: `select format('%s: the gateway refunded %s, our refunds have %s', b.key, ${REFUNDED},
        coalesce(r.amount, 0)) as wrong
      from book_charge b
      join payment_attempt a on a.gateway_key = b.key and a.state = 'SUCCEEDED'
      left join lateral (
        select sum(amount_minor) as amount,
          bool_or(state in ('CREATED', 'SENDING', 'UNKNOWN', 'PENDING', 'REVIEW')) as is_open
        from refund where merchant_id = a.merchant_id and gateway_charge_id = a.gateway_charge_id
          and state <> 'REFUSED') r on true
      where ${REFUNDED} <> coalesce(r.amount, 0) and not coalesce(r.is_open, false)`,
  },
  {
    invariant: 10,
    needs: 'gateway',
    counted: `select count(distinct key) as n from book_refund`,
    wrong: `select format('%s was refunded %s times in the gateway''s book', key, count(*)) as wrong
      from book_refund where status <> 'failed' and key is not null group by gateway, key having count(*) > 1`,
  },
  {
    invariant: 10,
    needs: 'gateway',
    counted: `select count(*) as n from book_refund`,
    wrong: `select format('the gateway refunded %s, but no refund requested it', b.key) as wrong
      from ${REFUNDS_IN_SNAPSHOT} b left join refund r on r.gateway_key = b.key
      where r.id is null and b.key is not null and b.status <> 'failed'`,
  },
  {
    invariant: 10,
    needs: 'gateway',
    counted: `select count(*) as n from ${IN_BOOK} where r.state = 'SUCCEEDED'`,
    wrong: `select format('refund %s of %s is %s here, and the gateway has %s', r.gateway_key,
        r.amount_minor, r.state, coalesce(b.amount_minor || ' ' || b.status, 'none')) as wrong
      from ${IN_BOOK}
      left join lateral (
        select amount_minor, status from book_refund
        where key = r.gateway_key and gateway = r.gateway
        order by status = 'failed' limit 1) b on true
      where not ${BY_PERSON} and (
        (r.state = 'SUCCEEDED'
          and (b.status is distinct from 'succeeded' or b.amount_minor <> r.amount_minor))
        or (r.state = 'REFUSED' and b.status <> 'failed'))`,
  },
  {
    invariant: 10,
    counted: `select count(*) as n from refund where state in ('SUCCEEDED', 'REFUSED')`,
    wrong: `select format('refund %s of %s is %s, and its events told %s refunded and %s failed', r.id,
        r.amount_minor, r.state, coalesce(t.refunded, 0), coalesce(t.failed, 0)) as wrong
      from refund r
      join payment_intent i on i.merchant_id = r.merchant_id and i.id = r.intent_id
      left join (
        select merchant_id, refund_id,
          sum(amount_minor) filter (where type = 'intent.refunded') as refunded,
          count(*) filter (where type = 'intent.refunded') as count,
          count(*) filter (where type = 'intent.refund_failed') as failed
        from ${TOLD} told group by merchant_id, refund_id) t
        on t.merchant_id = r.merchant_id and t.refund_id = r.id
      where r.late_attempt_id is null
        and not exists (
          select from outbox_event e where e.merchant_id = r.merchant_id
            and e.stream_id = coalesce(i.subscription_id, i.id) and e.body_deleted_at is not null)
        and case r.state
          when 'SUCCEEDED' then t.count is distinct from 1 or t.refunded <> r.amount_minor or t.failed <> 0
          when 'REFUSED' then t.count > 1 or t.failed < t.count
          else t.count <> 0 end`,
  },
  {
    invariant: 10,
    needs: 'client',
    counted: `select count(distinct key) as n from book_answer
      where status = 200 and body like '{"refundId":"%'`,
    wrong: `select format('a client was told that %s refunded %s, and the row %s', b.body::json->>'refundId',
        b.body::json->>'amount', coalesce('is ' || r.state || ' of ' || r.amount_minor, 'is missing')) as wrong
      from (select distinct body from book_answer
        where status = 200 and body like '{"refundId":"%') b
      left join refund r on r.id = b.body::json->>'refundId'
      where r.id is null or r.amount_minor <> (b.body::json->>'amount')::bigint
        or r.intent_id <> b.body::json->>'intentId' or r.state not in ('SUCCEEDED', 'REFUSED')`,
  },
];
