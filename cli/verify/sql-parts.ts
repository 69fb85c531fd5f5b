/** SQL for the due date `index`, in UTC. As in the service, a missing day becomes the month's last. */
export const dateOf = (index: string): string => `
  (to_timestamp((state->>'anchorAt')::bigint / 1000.0) at time zone 'UTC'
    + (${index}) * (state->'terms'->>'intervalCount')::int
      * ('1 ' || (state->'terms'->>'interval'))::interval)`;

/** From this time a gateway's charge may miss in the snapshot, which begins at `now()`. Clocks may differ by 5 s. */
export const MAYBE_NEWER = `(now() - interval '5 seconds')`;

/** SQL for the gateways' refunds, without those that are newer than the snapshot of our rows. */
export const REFUNDS_IN_SNAPSHOT = `(select * from book_refund n where n.created_at < ${MAYBE_NEWER}
  or exists (select from refund known where known.gateway_key = n.key))`;

/** SQL for what the gateway had refunded of its charge `b` at the snapshot: also pending, or without the service. */
export const REFUNDED = `(
  select coalesce(sum(f.amount_minor), 0) from ${REFUNDS_IN_SNAPSHOT} f
  where f.gateway = b.gateway and f.charge_id = b.charge_id and f.status <> 'failed')`;

/** SQL for the statuses that a subscription entered, according to its events. */
export const ENTERED = `(
  select merchant_id, stream_id, sequence, type, occurred_at, body::json->>'status' as status
  from outbox_event
  where type in ('subscription.created', 'subscription.trialing', 'subscription.active',
    'subscription.unpaid', 'subscription.paused', 'subscription.ended'))`;

/** SQL for a column of the import of subscription `id`, null without one. The arguments are qualified columns. */
export const atImport = (column: string, merchantId: string, id: string): string => `(
  select m.${column} from subscription_import m
  where m.merchant_id = ${merchantId} and m.subscription_id = ${id})`;

/** SQL for the number of cycles of subscription `s` that another system charged before the import. */
export const PAID_BEFORE = `coalesce(${atImport('cycles_charged', 's.merchant_id', 's.id')}, 0)`;
