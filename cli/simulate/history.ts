import { sql } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';
import { timestamp } from '../../db/repositories/records.ts';
import type { CardLimits } from '../../domain/card-limits.ts';
import { STOPPING_ADVICE, STOPS_RETRIES } from '../../domain/declines.ts';
import { grouped } from '../command-line/terminal.ts';

/** What the rules of today would have done with the attempts of an earlier version, or under other settings. */
export interface RulesInHistory {
  readonly attempts: number;
  /** Automatic ones on the card of a decline after which none follows. */
  readonly stopped: number;
  /** Automatic ones before the date that the bank had advised. */
  readonly moved: number;
  /** Of any kind, on a card that had reached a limit. */
  readonly limited: number;
}

export async function rulesInHistory(
  db: Db,
  { merchantId, sinceAt, limits }: { merchantId: string; sinceAt: number; limits: CardLimits },
): Promise<RulesInHistory> {
  const listed = (values: readonly string[]) => sql`(${sql.join([...values], sql`, `)})`;
  // Without the attempt itself; attempts at the same instant are not counted.
  const unpaidIn = (time: string) => sql`coalesce(sum((state = 'DECLINED')::int) over (
    partition by payment_method_id order by created_at
    range between ${sql.raw(`interval '${time}'`)} - interval '1 ms' preceding
      and interval '1 ms' preceding), 0)`;
  const [row] = await db.execute<RulesInHistory & Record<string, unknown>>(sql`
    with attempt as (
      select created_at, lag(error_code) over on_intent as code_before, lag(advice) over on_intent as advised,
        trigger = 'automatic_retry' and payment_method_id = lag(payment_method_id) over on_intent as is_retry,
        ${unpaidIn('24 hours')} as in_a_day, ${unpaidIn('30 days')} as in_30_days
      from payment_attempt
      where merchant_id = ${merchantId} and settled_by is distinct from 'void'
        and created_at >= ${timestamp(sinceAt)}
      window on_intent as (partition by intent_id order by attempt_number)
    )
    select count(*)::int as attempts,
      (count(*) filter (where is_retry and (code_before in ${listed(STOPS_RETRIES)}
        or advised ->> 'kind' in ${listed(STOPPING_ADVICE)})))::int as stopped,
      (count(*) filter (where is_retry and advised ->> 'kind' = 'not_before'
        and extract(epoch from created_at) * 1000 < (advised ->> 'at')::numeric))::int as moved,
      (count(*) filter (where in_a_day >= ${limits.perDay} or in_30_days >= ${limits.per30Days}))::int
        as limited
    from attempt`);
  if (!row) throw new Error('no row');
  return row;
}

export function historyLines(days: number, rules: RulesInHistory): string[] {
  const { attempts, stopped, moved, limited } = rules;
  return [
    `${grouped(attempts)} attempts in the last ${days} days. The rules of today`,
    `  stop ${grouped(stopped)}: after a decline, or an advice, that forbids another try`,
    `  move ${grouped(moved)}: the bank advised a later date`,
    `  hold ${grouped(limited)}: the card had reached its limit of unpaid attempts`,
  ];
}
