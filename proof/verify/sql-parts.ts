/**
 * SQL for the due date with number `index` of a subscription, in UTC. Postgres adds months to the anchor. If
 * the day does not exist in the month, Postgres uses the month's last day, as D-05 requires.
 */
export const dateOf = (index: string): string => `
  (to_timestamp((state->>'anchorAt')::bigint / 1000.0) at time zone 'UTC'
    + (${index}) * (state->'terms'->>'intervalCount')::int
      * ('1 ' || (state->'terms'->>'interval'))::interval)`;

/** SQL for the statuses that a subscription entered, according to its events. */
export const ENTERED = `(
  select merchant_id, stream_id, sequence, type, occurred_at, body::json->>'status' as status
  from outbox_event
  where type in ('subscription.created', 'subscription.trialing', 'subscription.active',
    'subscription.unpaid', 'subscription.paused', 'subscription.ended'))`;
