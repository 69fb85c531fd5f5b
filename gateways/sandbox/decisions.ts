import { createHmac, randomUUID } from 'node:crypto';
import type { Sql } from 'postgres';

/** How the sandbox behaves, see `server.ts`. */
export const PERSONALITIES = ['instant', 'pending'] as const;
export type Personality = (typeof PERSONALITIES)[number];

/** Where the gateway sends the events of its decisions. */
export interface EventTarget {
  readonly url: string;
  /** Key of the signature, HMAC-SHA256. */
  readonly secret: string;
}

export interface DecisionOptions {
  readonly sql: Sql;
  /** Null: the gateway sends no events. */
  readonly target: EventTarget | null;
  /** A charge or refund is decided this long after its request, in ms. */
  readonly decideAfterMs: number;
  readonly now: () => number;
  /** Called for an error of the database. */
  readonly onFailure: (error: unknown) => void;
}

/** Header with the time and the signature of an event: `t=<epoch ms>,v1=<hex>`. */
export const SIGNATURE_HEADER = 'sandbox-signature';

const ROUND_MS = 100;
const EVENT_TIMEOUT_MS = 5_000;
/** Time in ms before an event that was not accepted is sent again. */
const REPEAT_MS = 1_000;
/** Maximum number of events in one round. */
const EVENTS_AT_ONCE = 50;

/** Returns the value of {@link SIGNATURE_HEADER} for an event that is sent at `at`. */
export function signEvent(secret: string, at: number, body: string): string {
  const digest = createHmac('sha256', secret).update(`${at}.${body}`).digest('hex');
  return `t=${at},v1=${digest}`;
}

/**
 * Decides the pending charges and refunds, and sends a signed event for each decision, at least once and in no
 * order. An event has the key and not the outcome, so that the receiver has to ask. All data are rows, so a
 * restart loses no decision and no event.
 */
export function createDecisions({ sql, target, decideAfterMs, now, onFailure }: DecisionOptions) {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosed = false;

  /** Decides the pending charges and refunds requested at `before` (epoch ms) or earlier, and stores their events. */
  const decide = async (before: number): Promise<void> => {
    await sql`
      with charges as (
        update sandbox_gateway.charge set is_pending = false
        where is_pending and created_at <= ${before} returning key),
      refunds as (
        update sandbox_gateway.refund set status = 'succeeded'
        where status = 'pending' and created_at <= ${before} returning key)
      insert into sandbox_gateway.event (id, type, key, due_at)
      select gen_random_uuid()::text, 'charge.decided', key, ${now()}::bigint from charges
      union all
      select gen_random_uuid()::text, 'refund.decided', key, ${now()}::bigint from refunds`;
  };

  const send = async ({ url, secret }: EventTarget): Promise<void> => {
    const due = await sql<{ id: string; type: string; key: string }[]>`
      update sandbox_gateway.event set due_at = ${now() + REPEAT_MS} where id in (
        select id from sandbox_gateway.event where due_at <= ${now()}
        order by due_at limit ${EVENTS_AT_ONCE} for update skip locked)
      returning id, type, key`;
    await Promise.all(
      due.map(async ({ id, type, key }) => {
        const body = JSON.stringify({ id, type, key });
        const response = await fetch(url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            [SIGNATURE_HEADER]: signEvent(secret, Date.now(), body),
          },
          body,
          signal: AbortSignal.timeout(EVENT_TIMEOUT_MS),
        }).catch(() => null);
        await response?.body?.cancel();
        if (response?.ok !== true) return;
        await sql`delete from sandbox_gateway.event where id = ${id}`;
      }),
    );
  };

  const round = async (): Promise<void> => {
    try {
      await decide(now() - decideAfterMs);
      if (target !== null) await send(target);
    } catch (error) {
      onFailure(error);
    }
    if (!isClosed) timer = setTimeout(() => void (running = round()), ROUND_MS);
  };

  return {
    start: () => void (running = round()),
    /** Decides every pending charge and refund now. */
    decideAll: () => decide(Number.MAX_SAFE_INTEGER),
    /** Stores the event of a refund that the control route decided. */
    async report(type: 'refund.decided', key: string): Promise<void> {
      await sql`
        insert into sandbox_gateway.event (id, type, key, due_at)
        values (${randomUUID()}, ${type}, ${key}, ${now()})`;
    },
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      await running;
      clearTimeout(timer);
    },
  };
}

export type Decisions = ReturnType<typeof createDecisions>;
