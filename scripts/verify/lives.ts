/**
 * Date `index` of the calendar of a row of `subscription`, by Postgres' own, without a zone: months are
 * added to the anchor and cut to the length of the month, which is what D-05 asks for.
 */
export const dateOf = (index: string): string => `
  (to_timestamp((state->>'anchorAt')::bigint / 1000.0) at time zone 'UTC'
    + (${index}) * (state->'terms'->>'intervalCount')::int
      * ('1 ' || (state->'terms'->>'interval'))::interval)`;

/** What a subscription's own events say of its statuses. */
export const ENTERED = `(
  select merchant_id, stream_id, sequence, type, occurred_at, body::json->>'status' as status
  from outbox_event
  where type in ('subscription.created', 'subscription.trialing', 'subscription.active',
    'subscription.unpaid', 'subscription.paused', 'subscription.ended'))`;
