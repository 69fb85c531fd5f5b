import { CARD_LIMITS_MAX } from '../../domain/card-limits.ts';
import type { Check } from './check.ts';
import { MAYBE_NEWER } from './sql-parts.ts';

const PAID = `('SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED')`;

/** A late charge is found after its attempt was settled as not paid, and is then refunded. */
const LATE = `(select a.gateway_key from refund l
  join payment_attempt a on a.merchant_id = l.merchant_id and a.id = l.late_attempt_id)`;

/** The charge of an attempt that a manual review settled as paid may have another key. */
const PAID_BY_PERSON = `exists (select from payment_review v
  where v.merchant_id = a.merchant_id and v.subject_id = a.id and v.outcome = 'paid')`;

const IN_BOOK = `payment_attempt a join book_gateway g on g.gateway = a.gateway and a.sent_at[1] >= g.from_at`;

/** SQL for the number of unpaid attempts on the card of each one, within `time` until it. */
const unpaidWithin = (time: string): string => `count(*) over (
  partition by merchant_id, payment_method_id order by created_at
  range between interval '${time}' - interval '1 millisecond' preceding and current row)`;

/**
 * Invariants 1 (charged exactly once), 3 (the owed amount) and 11 (the limits of a card). An open attempt may differ from
 * the gateway's book.
 */
export const chargingChecks: readonly Check[] = [
  {
    invariant: 1,
    needs: 'gateway',
    counted: `select count(distinct intent_id) as n from book_charge where outcome = 'succeeded'`,
    wrong: `select format('%s was charged %s times in the gateway''s book', intent_id, count(*)) as wrong
      from book_charge where outcome = 'succeeded' and key not in ${LATE} group by intent_id having count(*) > 1`,
  },
  {
    invariant: 1,
    needs: 'gateway',
    counted: `select count(*) as n from ${IN_BOOK} where a.state = 'SUCCEEDED'`,
    wrong: `select format('attempt %s is %s here and %s in the gateway''s book', a.gateway_key, a.state,
        coalesce(b.outcome, 'absent')) as wrong
      from ${IN_BOOK}
      left join lateral (
        select outcome from book_charge where key = a.gateway_key and gateway = a.gateway
        order by outcome = 'succeeded' desc limit 1) b on true
      where ((a.state = 'SUCCEEDED' and b.outcome is distinct from 'succeeded' and not ${PAID_BY_PERSON})
          or (a.state = 'DECLINED' and b.outcome = 'succeeded' and a.gateway_key not in ${LATE}))`,
  },
  {
    invariant: 1,
    needs: 'gateway',
    counted: `select count(*) as n from book_charge`,
    wrong: `select format('the gateway charged %s, but no attempt requested it', b.key) as wrong
      from book_charge b left join payment_attempt a on a.gateway_key = b.key
      where a.gateway_key is null and b.created_at < ${MAYBE_NEWER}`,
  },
  {
    invariant: 1,
    counted: `select count(*) as n from payment_intent`,
    wrong: `select format('%s is %s with %s attempts that succeeded', i.id, i.status, count(a.id)) as wrong
      from payment_intent i left join payment_attempt a
        on a.merchant_id = i.merchant_id and a.intent_id = i.id and a.state = 'SUCCEEDED'
      group by i.merchant_id, i.id, i.status
      having count(a.id) <> case when i.status in ${PAID} then 1 else 0 end`,
  },
  {
    invariant: 3,
    needs: 'gateway',
    counted: `select count(*) as n from book_charge`,
    wrong: `select format('%s: the gateway charged %s %s, but %s %s was owed', b.key,
        b.amount_minor, b.currency, i.amount_minor, i.currency) as wrong
      from book_charge b
      join payment_attempt a on a.gateway_key = b.key
      join payment_intent i on i.merchant_id = a.merchant_id and i.id = a.intent_id
      where b.amount_minor <> i.amount_minor or b.currency <> i.currency
        or a.amount_minor <> i.amount_minor or a.currency <> i.currency`,
  },
  {
    invariant: 11,
    counted: `select count(*) as n from payment_attempt where state = 'DECLINED'`,
    wrong: `select format('%s is unpaid attempt %s on %s in 24 h, %s in 30 days', gateway_key, in_a_day,
        payment_method_id, in_30_days) as wrong
      from (
        select *, ${unpaidWithin('24 hours')} as in_a_day, ${unpaidWithin('30 days')} as in_30_days
        from payment_attempt where state = 'DECLINED' and settled_by is distinct from 'void') u
      where in_a_day > ${CARD_LIMITS_MAX.perDay} or in_30_days > ${CARD_LIMITS_MAX.per30Days}`,
  },
];
