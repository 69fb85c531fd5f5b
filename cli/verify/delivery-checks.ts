import type { Check } from './check.ts';
import { PAID_BEFORE } from './sql-parts.ts';

/** Longer than a dead worker's claim (45 s), a failing endpoint's probe (72 s) and the next sweep (40 s) together. */
const REPAIRED = `interval '10 minutes'`;

/** A slow endpoint may need hours for a recovery of 100,000 events, which give way to new ones. */
const RESENT = `interval '1 day'`;

/** An UNKNOWN attempt or refund goes to REVIEW after 24 h of look-ups without an answer. */
const LOOKED_UP = `interval '26 hours'`;

/** Invariants 5 (events), 6 (idempotency keys) and 7 (nothing is open for longer than its repair takes). */
export const deliveryChecks: readonly Check[] = [
  {
    invariant: 5,
    counted: `select count(*) as n from outbox_event`,
    wrong: `select format('%s has %s events, numbered %s to %s, and counts %s', s.id, count(e.id),
        min(e.sequence), max(e.sequence), s.last_sequence) as wrong
      from event_stream s left join outbox_event e
        on e.merchant_id = s.merchant_id and e.stream_id = s.id
      group by s.merchant_id, s.id, s.last_sequence
      having count(e.id) <> s.last_sequence or min(e.sequence) <> 1 or max(e.sequence) <> s.last_sequence`,
  },
  {
    invariant: 5,
    counted: `select count(*) as n from feed_entry`,
    wrong: `select format('%s is in %s entries of the feed', e.id, count(f.events)) as wrong
      from outbox_event e left join feed_entry f on f.merchant_id = e.merchant_id and f.stream_id = e.stream_id
        and e.sequence >= f.first_sequence and e.sequence < f.first_sequence + f.events
      group by e.merchant_id, e.id having count(f.events) <> 1
      union all
      select format('the feed has event %s of %s before an earlier one', first_sequence, stream_id) from (
        select *, lag(position) over (partition by merchant_id, stream_id order by first_sequence) as before
        from feed_entry) f
      where before > position or (before is null and position is not null and exists (
        select from feed_entry b where b.merchant_id = f.merchant_id and b.stream_id = f.stream_id
          and b.first_sequence < f.first_sequence))
      union all
      select format('two events of %s have the position %s', merchant_id, position) from (
        select *, lag(position + events) over (partition by merchant_id order by position) as upto
        from feed_entry where position is not null) f
      where upto > position`,
  },
  {
    invariant: 5,
    counted: `select count(*) as n from outbox_event where type = 'intent.success'`,
    wrong: `select format('%s is %s and has %s intent.success events', i.id, i.status, count(e.id)) as wrong
      from payment_intent i left join outbox_event e
        on e.merchant_id = i.merchant_id and e.type = 'intent.success'
          and e.stream_id = coalesce(i.subscription_id, i.id) and e.body::json->>'intentId' = i.id
      group by i.merchant_id, i.id, i.status
      having count(e.id) <> case when i.status in ('SUCCESS', 'REFUNDED', 'PARTIALLY_REFUNDED') then 1 else 0 end`,
  },
  {
    invariant: 5,
    counted: `select count(*) as n from payment_intent`,
    wrong: `select format('%s has %s intent.created events', i.id, count(e.id)) as wrong
      from payment_intent i left join outbox_event e
        on e.merchant_id = i.merchant_id and e.type = 'intent.created'
          and e.stream_id = coalesce(i.subscription_id, i.id) and e.body::json->>'intentId' = i.id
      group by i.merchant_id, i.id having count(e.id) <> 1`,
  },
  // A transaction that began before a change of the configuration may store its event after the change. So
  // the check excludes an event within 1 minute of the change. It also excludes an event without a body,
  // because a sweep has deleted the body and the deliveries of such an event.
  {
    invariant: 5,
    counted: `select count(*) as n from webhook_delivery`,
    wrong: `select format('%s (%s) has no delivery to %s', e.id, e.type, c.id) as wrong
      from outbox_event e
      join webhook_config c on c.merchant_id = e.merchant_id and e.type = any(c.event_types)
        and c.is_active and c.deleted_at is null
        and c.updated_at < e.inserted_at - interval '1 minute'
      left join webhook_delivery d
        on d.merchant_id = e.merchant_id and d.event_id = e.id and d.config_id = c.id
      where d.event_id is null and e.body_deleted_at is null and e.stream_id <> c.id`,
  },
  {
    invariant: 5,
    counted: `select count(*) as n from outbox_event where type = 'subscription.cycle_charged'`,
    wrong: `select format('%s: %s cycles paid, %s cycle_charged events', s.id,
        s.cycles_charged - ${PAID_BEFORE}, count(e.id)) as wrong
      from subscription s left join outbox_event e
        on e.merchant_id = s.merchant_id and e.stream_id = s.id and e.type = 'subscription.cycle_charged'
      group by s.merchant_id, s.id, s.cycles_charged having count(e.id) + ${PAID_BEFORE} <> s.cycles_charged`,
  },
  // Only merchants in the receivers' book are checked: other merchants may have receivers without a book.
  {
    invariant: 5,
    needs: 'receiver',
    counted: `select count(*) as n from book_webhook`,
    wrong: `select format('%s (%s) is DELIVERED but not in the receiver''s book', d.event_id, e.type) as wrong
      from webhook_delivery d
      join outbox_event e on e.merchant_id = d.merchant_id and e.id = d.event_id
      left join book_webhook b on b.event_id = d.event_id and b.is_acknowledged
      where d.state = 'DELIVERED' and b.event_id is null
        and e.merchant_id in (
          select merchant_id from outbox_event join book_webhook on event_id = id)`,
  },
  {
    invariant: 5,
    needs: 'receiver',
    counted: `select count(distinct event_id) as n from book_webhook`,
    wrong: `select format('the receiver got %s (%s): %s', b.event_id, b.event_type,
        case when e.id is null then 'the event does not exist' else 'its signature is invalid' end) as wrong
      from book_webhook b left join outbox_event e on e.id = b.event_id
      where e.id is null or not b.is_signature_valid`,
  },
  // These answers are not stored under the key, so a repeat may get another answer: 5xx, 401 (wrong
  // credentials), 409 (the key is in use) and 429 (rate limit).
  {
    invariant: 6,
    needs: 'client',
    counted: `select count(distinct key) as n from book_answer`,
    wrong: `select format('key %s has %s different answers', key, count(distinct (status, body))) as wrong
      from book_answer where status < 500 and status not in (401, 409, 429)
      group by key having count(distinct (status, body)) > 1`,
  },
  // An UNKNOWN attempt whose latest request was answered is in progress at the gateway. It goes to REVIEW after 31
  // days, so 32 days are a violation.
  // An attempt stays in SENDING, and a refund in CREATED or SENDING, only while an activity runs, or after a crash until the
  // retry of the activity or the maintenance sweep. 2 hours is far longer than both.
  {
    invariant: 7,
    counted: `select count(*) as n from payment_attempt where state in ('SENDING', 'UNKNOWN')`,
    wrong: `select format('attempt %s is %s since %s%s', gateway_key, state,
        sent_at[1], coalesce(' (' || reason || ')', '')) as wrong
      from payment_attempt
      where state in ('SENDING', 'UNKNOWN')
        and coalesce(case state when 'UNKNOWN' then unanswered_at end, sent_at[cardinality(sent_at)])
          < now() - case when state <> 'UNKNOWN' then interval '2 hours'
            when unanswered_at is null then interval '32 days' else ${LOOKED_UP} end`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from refund where state in ('CREATED', 'SENDING', 'UNKNOWN')`,
    wrong: `select format('refund %s is %s since %s', id, state, created_at) as wrong from refund
      where state in ('CREATED', 'SENDING', 'UNKNOWN')
        and coalesce(first_sent_at, updated_at)
          < now() - case state when 'UNKNOWN' then ${LOOKED_UP} else interval '2 hours' end`,
  },
  // A due delivery may wait for an earlier delivery of its stream, until the earlier one has failed 3 times. It
  // may also wait for the probe of an open circuit breaker.
  {
    invariant: 7,
    counted: `select count(*) as n from webhook_delivery where state = 'PENDING'`,
    wrong: `select format('event %s for %s was due at %s', d.event_id, d.config_id, d.next_attempt_at) as wrong
      from webhook_delivery d
      where d.state = 'PENDING'
        and d.next_attempt_at < now() - case when d.is_resent then ${RESENT} else ${REPAIRED} end
        and not exists (
          select from webhook_delivery before
          where before.merchant_id = d.merchant_id and before.stream_id = d.stream_id
            and before.config_id = d.config_id and before.state = 'PENDING'
            and before.is_resent = d.is_resent and before.sequence < d.sequence
            and before.attempts - before.resent_after < 3)
        and not exists (
          select from webhook_config down
          where down.merchant_id = d.merchant_id and down.id = d.config_id
            and down.consecutive_failures >= 5 and down.paused_until > now() - ${REPAIRED})`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from subscription where workflow_started_at is null`,
    wrong: `select format('%s has no confirmed workflow since %s', id, inserted_at) as wrong
      from subscription
      where workflow_started_at is null and inserted_at < now() - ${REPAIRED}`,
  },
  {
    invariant: 7,
    counted: `select count(*) as n from subscription where clock_reached_at is not null and status <> 'ENDED'`,
    wrong: `select format('%s has reached %s, but its clock''s target is %s', s.id,
        s.clock_reached_at, c.target_at) as wrong
      from subscription s join test_clock c on c.merchant_id = s.merchant_id and c.id = s.test_clock_id
      where s.status <> 'ENDED' and s.clock_reached_at < c.target_at
        and s.updated_at < now() - ${REPAIRED}`,
  },
];
