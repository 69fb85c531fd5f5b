import type postgres from 'postgres';
import { grouped } from '../../../cli/command-line/terminal.ts';
import type { Figure } from './gateway-faults.ts';
import type { Load } from './load.ts';

export async function countCycles(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select coalesce(sum(cycles_charged), 0)::int as n from subscription`;
  return row?.n ?? 0;
}

/** True if more cycles were paid on test clocks than in real time. */
export async function areClocksAhead(sql: postgres.Sql): Promise<boolean> {
  const [row] = await sql<{ difference: number }[]>`
    select coalesce(sum(case when test_clock_id is null then -1 else 1 end * cycles_charged), 0)::int
      as difference from subscription`;
  return (row?.difference ?? 0) > 0;
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
      (count(*) filter (where payer_asked_at is not null))::int as asked,
      (count(*) filter (where payer_asked_at is not null and state = 'SUCCEEDED'))::int as confirmed,
      (count(*) filter (where advice is not null))::int as advised,
      (select count(*)::int from subscription_entry where kind = 'limited') as limited,
      (select count(*)::int from subscription_entry where kind = 'notice_given') as notices,
      (select count(*)::int from subscription_entry where kind = 'notice_missed') as missed,
      (select count(*)::int from (select from subscription group by merchant_id, state ->> 'paymentMethodId'
        having count(*) > 1 and state ->> 'paymentMethodId' is not null) card) as shared,
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
  const { ends, atBank, reloads } = load.payers;
  const count = (name: string): string => grouped(row?.[name] ?? 0);
  return [
    ['cycles paid', grouped(await countCycles(sql))],
    ['one-time charges paid', count('one_time')],
    ['attempts', count('attempts')],
    ['declined, with advice', `${count('declined')}, ${count('advised')}`],
    [
      'saved cards offered, cards of several subscriptions, charges that waited for a card’s limit',
      `${grouped(load.payers.savedCards)}, ${count('shared')}, ${count('limited')}`,
    ],
    ['attempts sent more than once to the sandbox, under one key', count('resent')],
    ['refunds requested', grouped(load.refunds)],
    [
      'refunds made, refused after they were stored',
      `${count('refunded')}, ${count('refund_refused')}`,
    ],
    ['intents refunded wholly, partly', `${count('wholly')}, ${count('partly')}`],
    ['gateway’s events stored, not handled', `${count('gateway_events')}, ${count('unhandled')}`],
    ['notices given, missed', `${count('notices')}, ${count('missed')}`],
    ['events', count('events')],
    ['webhooks received', grouped(webhooksReceived)],
    ['subscriptions', grouped(load.made)],
    ['checkouts that expired unpaid', grouped(load.tooLate)],
    [
      'update pages that ended saved, paid, declined, closed',
      `${ends.saved}, ${ends.paid}, ${ends.declined}, ${ends.closed}`,
    ],
    [
      '3D Secure completed, failed, left and opened again, left for another card',
      `${atBank.complete}, ${atBank.fail}, ${atBank['come back']}, ${atBank['other card']}`,
    ],
    ['charges to be confirmed by the payer, paid', `${count('asked')}, ${count('confirmed')}`],
    ...(await triggersOf(sql)),
    ['client commands', grouped(load.commands)],
    ['requests, repeated requests', `${grouped(asked)}, ${grouped(repeated)}`],
    ['requests without a definite answer', String(unanswered.length)],
    ['pages reloaded', grouped(reloads)],
    ['repairs by sweeps', repairs],
  ];
}

/** The attempts without a test clock, and those with one, by what caused them. */
async function triggersOf(sql: postgres.Sql): Promise<Figure[]> {
  const rows = await sql<{ trigger: string; real: number; clocked: number }[]>`
    select a.trigger, (count(*) filter (where s.test_clock_id is null))::int as real,
      count(s.test_clock_id)::int as clocked
    from payment_attempt a
    join payment_intent i on i.merchant_id = a.merchant_id and i.id = a.intent_id
    join subscription s on s.merchant_id = i.merchant_id and s.id = i.subscription_id
    where i.kind = 'cycle' group by a.trigger order by a.trigger`;
  return rows.map(({ trigger, real, clocked }) => [
    `attempts in real time, on test clocks: ${trigger.replaceAll('_', ' ')}`,
    `${grouped(real)}, ${grouped(clocked)}`,
  ]);
}

/** The repairs that the maintenance sweeps have made so far, as text: each kind with its count. */
export async function repairsOf(sql: postgres.Sql): Promise<string> {
  const rows = await sql<{ kind: string; repaired: number }[]>`
    select kind, repaired::int as repaired from sweep_count where repaired > 0 order by kind`;
  return rows.length === 0 ? 'none' : rows.map((row) => `${row.kind} ${row.repaired}`).join(', ');
}
