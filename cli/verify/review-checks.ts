import type { Check } from './check.ts';
import { REFUNDED } from './sql-parts.ts';

/** Late charges under invariant 1; manual reviews and held subscriptions under invariant 7. */
export const reviewChecks: readonly Check[] = [
  {
    invariant: 1,
    counted: `select count(*) as n from refund where late_attempt_id is not null`,
    wrong: `select format('late charge %s of attempt %s has a refund of %s that is %s', r.gateway_charge_id,
        a.gateway_key, r.amount_minor, r.state) as wrong
      from refund r
      join payment_attempt a on a.merchant_id = r.merchant_id and a.id = r.late_attempt_id
      where r.state = 'REFUSED' or r.amount_minor <> a.amount_minor`,
  },
  {
    invariant: 1,
    needs: 'gateway',
    counted: `select count(*) as n from refund where late_attempt_id is not null`,
    wrong: `select format('late charge %s: the gateway refunded %s of %s, its refund is %s', b.key,
        ${REFUNDED}, b.amount_minor, r.state) as wrong
      from refund r
      join payment_attempt a on a.merchant_id = r.merchant_id and a.id = r.late_attempt_id
      join book_charge b on b.key = a.gateway_key
      where r.state = 'SUCCEEDED' and ${REFUNDED} <> b.amount_minor`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from payment_attempt where state = 'REVIEW'`,
    isForPerson: true,
    wrong: `select format('attempt %s (%s) needs manual review since %s: %s', a.id, a.gateway_key,
        to_char(v.since_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI'), a.reason) as wrong
      from payment_attempt a
      left join payment_review v on v.merchant_id = a.merchant_id and v.subject_id = a.id
      where a.state = 'REVIEW' and v.outcome is null order by v.since_at`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from refund where state = 'REVIEW'`,
    isForPerson: true,
    wrong: `select format('refund %s needs manual review since %s: %s', r.id,
        to_char(v.since_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI'), r.reason) as wrong
      from refund r
      left join payment_review v on v.merchant_id = r.merchant_id and v.subject_id = r.id
      where r.state = 'REVIEW' and v.outcome is null order by v.since_at`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from subscription where held_at is not null`,
    isForPerson: true,
    wrong: `select format('%s is held since %s: the database is older than its workflow', s.id,
        to_char(s.held_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI')) as wrong
      from subscription s where s.held_at is not null order by s.held_at`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from payment_review where outcome is not null`,
    wrong: `select format('%s was decided (%s) at %s but is not booked', v.subject_id, v.outcome,
        v.decided_at) as wrong
      from payment_review v
      left join payment_attempt a on a.merchant_id = v.merchant_id and a.id = v.subject_id
      left join refund r on r.merchant_id = v.merchant_id and r.id = v.subject_id
      where v.decided_at < now() - interval '10 minutes' and 'REVIEW' in (a.state, r.state)`,
  },
];
