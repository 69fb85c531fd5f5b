import type { Sql } from 'postgres';
import { json, LOST } from '../http-server/http.ts';
import { SIGNATURE_HEADER, signEvent } from './events.ts';
import type { Faults } from './faults.ts';

/** The sandbox decides a charge or refund at once (`instant`) or later (`pending`). See `server.ts`. */
export const PERSONALITIES = ['instant', 'pending'] as const;
export type Personality = (typeof PERSONALITIES)[number];

/** The receiver of the events that report the gateway's decisions. */
export interface EventTarget {
  /** The merchant's id is appended: `<url>/<mer_…>`. */
  readonly url: string;
  /** Key of the signature, HMAC-SHA256. */
  readonly secret: string;
}

export interface DecisionOptions {
  readonly sql: Sql;
  readonly faults: Faults;
  /** Null: the gateway sends no events. */
  readonly target: EventTarget | null;
  /** A charge or refund is decided this long after its request, in ms. */
  readonly decideAfterMs: number;
  readonly now: () => number;
  /** Called for an error of the database. */
  readonly onFailure: (error: unknown) => void;
}

const ROUND_MS = 100;
const EVENT_TIMEOUT_MS = 5_000;
/** Time in ms before an event that was not accepted is sent again. */
const REPEAT_MS = 1_000;
/** Maximum number of events in one round. */
const EVENTS_AT_ONCE = 50;

const NO_TARGET = { subscriptionId: null, paymentMethodId: null };

interface DueEvent {
  readonly id: string;
  readonly type: string;
  readonly key: string;
  readonly merchantId: string;
}

/**
 * Decides the pending charges and refunds, and sends a signed event for each decision, at least once and in no
 * guaranteed order. An event has the key and not the outcome, so the receiver must repeat its request to get the
 * outcome. All data are rows, so a restart loses no decision and no event.
 */
export function createDecisions(options: DecisionOptions) {
  const { sql, faults, target, now, onFailure } = options;
  let { decideAfterMs } = options;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isClosed = false;

  /** Decides the pending charges and refunds requested at `before` (epoch ms) or earlier, and stores their events. */
  const decide = async (before: number): Promise<void> => {
    await sql`
      with charges as (
        update sandbox_gateway.charge set is_pending = false
        where is_pending and created_at <= ${before} returning key, merchant_id),
      refunds as (
        update sandbox_gateway.refund r set status = 'succeeded' from sandbox_gateway.charge c
        where r.status = 'pending' and r.created_at <= ${before} and c.id = r.charge_id
        returning r.key, c.merchant_id)
      insert into sandbox_gateway.event (id, type, key, merchant_id, due_at)
      select gen_random_uuid()::text, 'charge.decided', key, merchant_id, ${now()}::bigint from charges
      union all
      select gen_random_uuid()::text, 'refund.decided', key, merchant_id, ${now()}::bigint from refunds`;
  };

  const send = async (receiver: EventTarget): Promise<void> => {
    const due = await sql<DueEvent[]>`
      update sandbox_gateway.event set due_at = ${now() + REPEAT_MS} where id in (
        select id from sandbox_gateway.event where due_at <= ${now()}
        order by due_at limit ${EVENTS_AT_ONCE} for update skip locked)
      returning id, type, key, merchant_id as "merchantId"`;
    await Promise.all(
      due.map(async (event) => {
        const answer = await faults.serve('event', NO_TARGET, {
          work: async () => json((await post(receiver, event)) ? 200 : 503, {}),
          drop: () => json(200, {}),
        });
        if (answer === LOST || answer.status !== 200) return;
        await sql`delete from sandbox_gateway.event where id = ${event.id}`;
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
    /** From now on, a charge or refund is decided this long after its request, until the process ends. */
    decideAfter: (ms: number) => void (decideAfterMs = ms),
    /** Stores the event of a refund that the control route decided. */
    async report(key: string): Promise<void> {
      await sql`
        insert into sandbox_gateway.event (id, type, key, merchant_id, due_at)
        select gen_random_uuid()::text, 'refund.decided', r.key, c.merchant_id, ${now()}::bigint
        from sandbox_gateway.refund r join sandbox_gateway.charge c on c.id = r.charge_id
        where r.key = ${key}`;
    },
    async close(): Promise<void> {
      isClosed = true;
      clearTimeout(timer);
      await running;
      clearTimeout(timer);
    },
  };
}

/** Sends the event. Returns true if the receiver has accepted it. */
async function post(
  { url, secret }: EventTarget,
  { id, type, key, merchantId }: DueEvent,
): Promise<boolean> {
  const body = JSON.stringify({ id, type, key });
  const response = await fetch(`${url}/${merchantId}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      [SIGNATURE_HEADER]: signEvent(secret, Date.now(), body),
    },
    body,
    signal: AbortSignal.timeout(EVENT_TIMEOUT_MS),
  }).catch(() => null);
  await response?.body?.cancel();
  return response?.ok === true;
}

export type Decisions = ReturnType<typeof createDecisions>;
