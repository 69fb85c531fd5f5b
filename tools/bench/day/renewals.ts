import type { SandboxCharge } from '../../../gateways/sandbox/charge-book.ts';
import { recordedCharges } from '../../../cli/verify/gateway-control.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';
import type { Arrival } from '../stack/receiver.ts';

/** One renewal, with the time of each step in epoch ms. The time of a step that has not happened is null. */
export type Renewal = Awaited<ReturnType<typeof readRenewals>>[number];
export type Deliveries = Awaited<ReturnType<typeof readDeliveries>>;

export async function readRenewals(
  stack: MeasuredStack,
  subscriptionIds: readonly string[],
  dueAt: number,
  arrivals: readonly Arrival[],
) {
  const settled = new Map(
    (
      await stack.sql<{ subscription_id: string; settled_at: Date }[]>`
        select i.subscription_id, a.settled_at
        from payment_intent i
        join payment_attempt a on a.merchant_id = i.merchant_id and a.intent_id = i.id
        where i.subscription_id = any(${[...subscriptionIds]}) and i.due_at = ${new Date(dueAt)}
          and a.state = 'SUCCEEDED'`
    ).map((row) => [row.subscription_id, row.settled_at.getTime()]),
  );
  const booked = new Map<string | null, number>();
  const { gatewayUrl, gatewayKey } = stack.demo;
  for await (const page of recordedCharges<SandboxCharge>(gatewayUrl, gatewayKey)) {
    for (const { outcome, createdAt, reference } of page) {
      if (outcome !== 'succeeded' || createdAt < dueAt) continue;
      booked.set(reference.subscriptionId, (booked.get(reference.subscriptionId) ?? 0) + 1);
    }
  }
  const delivered = new Map<string | null, number>();
  for (const { subscriptionId, at } of arrivals) {
    if (!delivered.has(subscriptionId)) delivered.set(subscriptionId, at);
  }
  return subscriptionIds.map((subscriptionId) => ({
    subscriptionId,
    /** Number of charges that the gateway recorded for this renewal. Only 1 is correct. */
    charges: booked.get(subscriptionId) ?? 0,
    /** Time at which the attempt was settled, by Postgres' clock. */
    settledAt: settled.get(subscriptionId) ?? null,
    deliveredAt: delivered.get(subscriptionId) ?? null,
  }));
}

/** The epoch ms at which each subscription's next step is to start: its due time and its jitter. */
export async function readPlaces(
  { sql }: MeasuredStack,
  subscriptionIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await sql<{ id: string; wake_at: Date | null }[]>`
    select id, wake_at from subscription where id = any(${[...subscriptionIds]})`;
  return new Map(rows.flatMap(({ id, wake_at: at }) => (at === null ? [] : [[id, at.getTime()]])));
}

export async function countOpen(
  { sql }: MeasuredStack,
  subscriptionIds: readonly string[],
  dueAt: number,
): Promise<{ unsettled: number; undelivered: number }> {
  const [row] = await sql<{ settled: number; undelivered: number }[]>`
    select
      (select count(*)::int from payment_intent
        where subscription_id = any(${[...subscriptionIds]}) and due_at = ${new Date(dueAt)}
          and status = 'SUCCESS') as settled,
      (select count(*)::int from webhook_delivery
        where stream_id = any(${[...subscriptionIds]}) and state = 'PENDING') as undelivered`;
  return {
    unsettled: subscriptionIds.length - (row?.settled ?? 0),
    undelivered: row?.undelivered ?? 0,
  };
}

/** The deliveries of events since `since` (epoch ms), of the given streams or of one configuration. */
export async function readDeliveries(
  { sql }: MeasuredStack,
  which: { readonly streamIds: readonly string[] } | { readonly configId: string },
  since: number,
  arrivals: readonly Arrival[],
) {
  const selected =
    'streamIds' in which
      ? sql`e.stream_id = any(${[...which.streamIds]})`
      : sql`d.config_id = ${which.configId}`;
  const rows = await sql<{ id: string; state: string; settled_at: Date | null; ms: number }[]>`
    select e.id, d.state, d.settled_at,
      extract(epoch from pg_xact_commit_timestamp(e.xmin))::float8 * 1000 as ms
    from outbox_event e
    join webhook_delivery d on d.merchant_id = e.merchant_id and d.event_id = e.id
    where ${selected} and e.inserted_at >= ${new Date(since)}`;
  const arrivedAt = new Map<string, number>();
  for (const { eventId, at } of arrivals) {
    if (!arrivedAt.has(eventId)) arrivedAt.set(eventId, at);
  }
  const recordedAt = rows.flatMap(({ settled_at: at }) => (at === null ? [] : [at.getTime()]));
  return {
    events: rows.length,
    undelivered: rows.filter(({ state }) => state !== 'DELIVERED').length,
    firstDeliveryMs: rows.flatMap(({ id, ms }) => {
      const at = arrivedAt.get(id);
      return at === undefined ? [] : [at - ms];
    }),
    /** Time of the last recorded delivery, in epoch ms by the worker's clock. Null if there is none. */
    lastRecordedAt: recordedAt.length === 0 ? null : Math.max(...recordedAt),
  };
}
