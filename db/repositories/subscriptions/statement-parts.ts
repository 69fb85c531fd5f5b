import { randomBytes } from 'node:crypto';
import { sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import { newId } from '../../../domain/ids.ts';
import type { CommandKind, CommandResult } from '../../../domain/subscription/commands.ts';
import type { SubscriptionState } from '../../../domain/subscription/state.ts';
import type { EventToStore } from '../webhooks/outbox.ts';
import { rowOf } from './row.ts';

/**
 * The CTEs of a statement that records a transition with one round trip and one commit. `moved` has a row
 * only if the subscription's row had the previous version. Every other CTE reads from `moved`, so a stale
 * caller writes nothing.
 */

/** Returns the CTE `moved`, which updates the subscription's row from `fromVersion` to `state`. */
export function movedPart(
  state: SubscriptionState,
  fromVersion: number,
  transitionId: string,
): SQL {
  const row = rowOf(state);
  return sql`moved as (
    update subscription set status = ${row.status}, version = ${row.version}::int,
      state = ${JSON.stringify(row.state)}::jsonb, amount_minor = ${row.amountMinor}::bigint,
      currency = ${row.currency}, cycle_count = ${row.cycleCount}::int,
      cycles_charged = ${row.cyclesCharged}::int, wake_at = ${timestamp(row.wakeAt)}, held_at = null,
      last_transition_id = ${transitionId}, updated_at = now()
    where merchant_id = ${state.merchantId} and id = ${state.subscriptionId}
      and version = ${fromVersion}::int
    returning merchant_id, id)`;
}

/** Returns the CTE that inserts the command of the transition. `result` is null while the outcome is unknown. */
export function commandPart(
  command: { commandId: string; kind: CommandKind; result: CommandResult | null },
  acceptedAt: number,
): SQL {
  return sql`command as (
    insert into subscription_command
      (merchant_id, subscription_id, command_id, kind, result, accepted_at)
    select merchant_id, id, ${command.commandId}, ${command.kind}, ${json(command.result)}::jsonb,
      ${timestamp(acceptedAt)} from moved)`;
}

/** Placeholder in an event's text. The statement replaces it by the sequence number. */
const SEQUENCE = Number.MAX_SAFE_INTEGER;

/**
 * Returns the CTEs that store the events in order. Each event gets a pending delivery for every active webhook
 * configuration of the merchant that subscribed to its type. The counter's row is locked until the commit, so the
 * sequence order is the commit order.
 */
export function outboxParts(events: readonly EventToStore[]): SQL[] {
  if (events.length === 0) return [];
  const count = events.length;
  const rows = events.map((event, index) => {
    const eventId = newId('evt', Date.now(), randomBytes);
    const body = JSON.stringify(event.body({ eventId, sequence: SEQUENCE }));
    const [before, after] = splitOnce(body, String(SEQUENCE));
    return sql`(${index}::int, ${eventId}, ${event.type}, ${before}, ${after}, ${timestamp(event.occurredAt)})`;
  });
  return [
    sql`counter as (
      insert into event_stream (merchant_id, id, last_sequence)
      select merchant_id, id, ${count}::bigint from moved
      on conflict (merchant_id, id)
        do update set last_sequence = event_stream.last_sequence + ${count}::bigint
      returning merchant_id, id, last_sequence - ${count}::bigint + 1 as first)`,
    sql`stored as (
      insert into outbox_event (merchant_id, id, stream_id, sequence, type, body, occurred_at)
      select c.merchant_id, e.id, c.id, c.first + e.index, e.type,
        e.before || (c.first + e.index)::text || e.after, e.occurred_at
      from counter c, (values ${sql.join(rows, sql`, `)})
        as e (index, id, type, before, after, occurred_at)
      returning merchant_id, id, stream_id, sequence, type)`,
    sql`deliveries as (
      insert into webhook_delivery (merchant_id, event_id, config_id, stream_id, sequence, state)
      select e.merchant_id, e.id, c.id, e.stream_id, e.sequence, 'PENDING'
      from stored e join webhook_config c
        on c.merchant_id = e.merchant_id and e.type = any (c.event_types)
      where c.is_active and c.deleted_at is null)`,
  ];
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error('an event without a sequence number');
  return [text.slice(0, at), text.slice(at + mark.length)];
}

export function withParts(parts: readonly SQL[], query: SQL): SQL {
  return sql`with ${sql.join([...parts], sql`, `)} ${query}`;
}

export function timestamp(at: number | null): SQL {
  return sql`${at === null ? null : new Date(at).toISOString()}::timestamptz`;
}

export function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

/**
 * SQLSTATE codes of a statement that failed because rows were not in the expected state: a division by zero, which a
 * statement forces on purpose (22012), a foreign key (23503) and a unique key (23505).
 */
const UNDONE_CODES = /^(22012|23503|23505)$/;

/** Returns an empty result for an error with one of {@link UNDONE_CODES}. Rethrows any other error. */
export function undone(error: unknown): [] {
  const { cause } = error as { cause?: { code?: unknown } };
  if (typeof cause?.code === 'string' && UNDONE_CODES.test(cause.code)) return [];
  throw error;
}
