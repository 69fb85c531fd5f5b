import { createHmac } from 'node:crypto';
import type { Sql } from 'postgres';
import { createArmed } from '../fault-proxy/armed.ts';
import { newId } from './book.ts';
import type { Book } from './book.ts';
import type { StripeObject } from './errors.ts';

/** The API version of all events and answers. */
export const API_VERSION = '2026-08-26.dahlia';

/**
 * - `hold`: the event waits until `release`.
 * - `drop`: the event is stored and never sent.
 * - `duplicate`: the event is sent twice.
 * - `before_answer`: the event is sent before the request that caused it is answered.
 */
export const EVENT_ACTIONS = ['hold', 'drop', 'duplicate', 'before_answer'] as const;

export interface EventRule {
  readonly action: (typeof EVENT_ACTIONS)[number];
  readonly type: string | null;
  readonly count: number;
}

export interface Emitted {
  readonly type: string;
  readonly object: StripeObject;
}

const DELIVERY_TIMEOUT_MS = 10_000;
/** Longest wait before a repeat, in ms. The waits are 1 s, 2 s, 4 s and so on. Stripe waits for hours. */
const LONGEST_WAIT_MS = 60_000;
const LEASE_MS = DELIVERY_TIMEOUT_MS + 5_000;
const POLL_MS = 500;

export type Events = ReturnType<typeof createEvents>;

export function createEvents(sql: Sql, nowMs: () => number) {
  const rules = createArmed<EventRule>();
  let isClosed = false;

  const take = (type: string): EventRule['action'] | null =>
    rules.take((rule) => rule.type === null || rule.type === type)?.action ?? null;

  const deliver = async (row: DeliveryRow): Promise<void> => {
    const isDelivered = await post(row, nowMs());
    const waitMs = Math.min(1_000 * 2 ** row.attempts, LONGEST_WAIT_MS);
    await sql`
      update stripe_double.event_delivery
      set attempts = attempts + 1, state = ${isDelivered ? 'delivered' : 'pending'},
        next_ms = ${nowMs() + waitMs}
      where sequence = ${row.sequence}`;
  };

  /** Claims them for `LEASE_MS`. If this process dies, they are due again after it. */
  const claim = async (): Promise<DeliveryRow[]> => {
    const rows = await sql<DeliveryRow[]>`
      update stripe_double.event_delivery d set next_ms = ${nowMs() + LEASE_MS}
      from stripe_double.account a
      where a.id = d.account_id and d.sequence in (
        select sequence from stripe_double.event_delivery
        where state = 'pending' and next_ms <= ${nowMs()}
        order by sequence limit 50 for update skip locked)
      returning d.sequence, d.raw_body, d.attempts, a.webhook_url, a.webhook_secret`;
    return rows.toSorted((a, b) => Number(a.sequence) - Number(b.sequence));
  };

  const running = new Set<Promise<void>>();
  const kick = (): void => {
    if (isClosed) return;
    const run = claim()
      .then(async (rows) => void (await Promise.all(rows.map(deliver))))
      .catch(() => undefined)
      .finally(() => running.delete(run));
    running.add(run);
  };
  const timer = setInterval(kick, POLL_MS);
  timer.unref();

  return {
    /** Returns the deliveries that must be sent before the request's answer. */
    async store(book: Book, emitted: readonly Emitted[], cause: Cause): Promise<string[]> {
      const early: string[] = [];
      for (const event of emitted) {
        early.push(...(await storeEvent(book, event, { cause, nowMs: nowMs(), take })));
      }
      return early;
    },
    async sendEarly(sequences: readonly string[]): Promise<void> {
      if (sequences.length === 0) return;
      const rows = await sql<DeliveryRow[]>`
        select d.sequence, d.raw_body, d.attempts, a.webhook_url, a.webhook_secret
        from stripe_double.event_delivery d join stripe_double.account a on a.id = d.account_id
        where d.sequence in ${sql(sequences)} order by d.sequence`;
      for (const row of rows) await deliver(row);
    },
    kick,
    addRule: rules.add,
    /** Removes the rules and sends the held events. */
    async release(): Promise<void> {
      rules.clear();
      await sql`
        update stripe_double.event_delivery set state = 'pending', next_ms = ${nowMs()}
        where state = 'held'`;
      kick();
    },
    async close(): Promise<void> {
      isClosed = true;
      clearInterval(timer);
      await Promise.all(running);
    },
  };
}

interface Cause {
  readonly now: number;
  readonly requestId: string | null;
  readonly idempotencyKey: string | null;
}

interface Storing {
  readonly cause: Cause;
  readonly nowMs: number;
  readonly take: (type: string) => EventRule['action'] | null;
}

/** Returns the deliveries that must be sent before the request's answer. */
async function storeEvent(
  book: Book,
  { type, object }: Emitted,
  { cause, nowMs, take }: Storing,
): Promise<string[]> {
  const [account] = await book.tx<{ webhook_url: string | null }[]>`
    select webhook_url from stripe_double.account where id = ${book.accountId}`;
  if (account?.webhook_url === null) return [];
  const body = {
    id: newId('evt'),
    object: 'event',
    api_version: API_VERSION,
    created: cause.now,
    data: { object },
    livemode: false,
    pending_webhooks: 1,
    request: { id: cause.requestId, idempotency_key: cause.idempotencyKey },
    type,
  };
  const action = take(type);
  const state = action === 'hold' ? 'held' : action === 'drop' ? 'dropped' : 'pending';
  // The request sends an early delivery itself. If the process dies before that, the delivery is due after `LEASE_MS`.
  const dueMs = action === 'before_answer' ? nowMs + LEASE_MS : nowMs;
  const rows = await book.tx<{ sequence: string }[]>`
    insert into stripe_double.event_delivery (event_id, account_id, raw_body, state, next_ms)
    select ${body.id}::text, ${book.accountId}::text, ${JSON.stringify(body)}::text, ${state}::text,
      ${dueMs}::bigint
    from generate_series(1, ${action === 'duplicate' ? 2 : 1}::integer)
    returning sequence`;
  return action === 'before_answer' ? rows.map(({ sequence }) => sequence) : [];
}

interface DeliveryRow {
  readonly sequence: string;
  readonly raw_body: string;
  readonly attempts: number;
  readonly webhook_url: string;
  readonly webhook_secret: string;
}

async function post(row: DeliveryRow, nowMs: number): Promise<boolean> {
  const seconds = Math.floor(nowMs / 1_000);
  const mac = createHmac('sha256', row.webhook_secret)
    .update(`${seconds}.${row.raw_body}`)
    .digest('hex');
  try {
    const response = await fetch(row.webhook_url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'stripe-signature': `t=${seconds},v1=${mac}`,
      },
      body: row.raw_body,
      redirect: 'manual',
      signal: AbortSignal.timeout(DELIVERY_TIMEOUT_MS),
    });
    await response.body?.cancel();
    return response.status >= 200 && response.status < 300;
  } catch {
    return false;
  }
}
