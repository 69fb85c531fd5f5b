import type postgres from 'postgres';
import { grouped } from '../../../cli/command-line/terminal.ts';
import type { Figure } from './gateway-faults.ts';
import type { Load } from './load.ts';

export async function countCycles(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select coalesce(sum(cycles_charged), 0)::int as n from subscription`;
  return row?.n ?? 0;
}

export async function figuresOf(
  sql: postgres.Sql,
  load: Load,
  webhooksReceived: number,
  repairs: string,
): Promise<Figure[]> {
  const [row] = await sql<Record<string, number>[]>`
    select count(*)::int as attempts,
      (count(*) filter (where state = 'DECLINED'))::int as declined,
      (count(*) filter (where cardinality(sent_at) > 1 and gateway like 'sandbox%'))::int as resent,
      (select count(*)::int from outbox_event) as events,
      (select count(*)::int from payment_intent
        where kind = 'one_time' and status = 'SUCCESS') as one_time,
      (select count(*)::int from refund where state = 'SUCCEEDED') as refunded,
      (select count(*)::int from refund where state = 'REFUSED') as refund_refused,
      (select count(*)::int from payment_intent where status = 'REFUNDED') as wholly,
      (select count(*)::int from payment_intent where status = 'PARTIALLY_REFUNDED') as partly,
      (select count(*)::int from gateway_event) as gateway_events,
      (select count(*)::int from gateway_event where handled_at is null) as unhandled
    from payment_attempt`;
  const { asked, repeated, unanswered } = load.client;
  const count = (name: string): string => grouped(row?.[name] ?? 0);
  return [
    ['cycles paid', grouped(await countCycles(sql))],
    ['one-time charges paid', count('one_time')],
    ['attempts', count('attempts')],
    ['declined', count('declined')],
    ['attempts sent more than once to the sandbox, under one key', count('resent')],
    ['refunds requested', grouped(load.refunds)],
    [
      'refunds made, refused after they were stored',
      `${count('refunded')}, ${count('refund_refused')}`,
    ],
    ['intents refunded wholly, partly', `${count('wholly')}, ${count('partly')}`],
    ['gateway’s events stored, not handled', `${count('gateway_events')}, ${count('unhandled')}`],
    ['events', count('events')],
    ['webhooks received', grouped(webhooksReceived)],
    ['subscriptions', grouped(load.made)],
    ['checkouts that expired unpaid', grouped(load.tooLate)],
    ['client commands', grouped(load.commands)],
    ['requests, repeated requests', `${grouped(asked)}, ${grouped(repeated)}`],
    ['requests without a definite answer', String(unanswered.length)],
    ['pages reloaded', grouped(load.pagesRepeated)],
    ['repairs by sweeps', repairs],
  ];
}

/** The repairs that the maintenance sweeps have made so far, as text: each kind with its count. */
export async function repairsOf(sql: postgres.Sql): Promise<string> {
  const rows = await sql<{ kind: string; repaired: number }[]>`
    select kind, repaired::int as repaired from sweep_count where repaired > 0 order by kind`;
  return rows.length === 0 ? 'none' : rows.map((row) => `${row.kind} ${row.repaired}`).join(', ');
}
