import type { TransactionSql } from 'postgres';
import { invalid, noSuch } from './errors.ts';
import type { StripeObject } from './errors.ts';
import { group, integer, text } from './form.ts';
import type { Params } from './form.ts';
import { KINDS } from './kinds.ts';
import type { Kind } from './kinds.ts';

export interface ListOrder {
  readonly kind: Kind;
  readonly url: string;
  /** Query parameters whose value must equal the field of the same name. */
  readonly filters: readonly string[];
}

export async function listPage(
  tx: TransactionSql,
  accountId: string,
  { kind, url, filters }: ListOrder,
  params: Params,
): Promise<StripeObject> {
  const limit = integer(params, 'limit') ?? 10;
  if (limit < 1 || limit > 100) {
    throw invalid('limit must be from 1 to 100', { param: 'limit' });
  }
  const before = text(params, 'ending_before');
  const cursor = before ?? text(params, 'starting_after');
  const cursorName = before === null ? 'starting_after' : 'ending_before';
  const sequence =
    cursor === null ? null : await sequenceOf(tx, accountId, kind, cursor, cursorName);
  const conditions = [
    tx`account_id = ${accountId} and kind = ${kind}`,
    ...filters.flatMap((name) => {
      const value = text(params, name);
      return value === null ? [] : [tx`${tx.unsafe(`body->>'${name}'`)} = ${value}`];
    }),
    ...createdConditions(tx, params),
    ...(sequence === null
      ? []
      : [before === null ? tx`sequence < ${sequence}` : tx`sequence > ${sequence}`]),
  ];
  const rows = await tx<{ body: StripeObject }[]>`
    select body from stripe_double.object
    where true ${conditions.map((condition) => tx`and ${condition}`)}
    order by sequence ${before === null ? tx`desc` : tx`asc`} limit ${limit + 1}`;
  const page = rows.slice(0, limit).map((row) => row.body);
  return {
    object: 'list',
    data: before === null ? page : page.toReversed(),
    has_more: rows.length > limit,
    url,
  };
}

async function sequenceOf(
  tx: TransactionSql,
  accountId: string,
  kind: Kind,
  id: string,
  param: string,
): Promise<string> {
  const [row] = await tx<{ sequence: string }[]>`
    select sequence from stripe_double.object
    where id = ${id} and account_id = ${accountId} and kind = ${kind}`;
  if (row === undefined) throw noSuch(KINDS[kind], id, param);
  return row.sequence;
}

const COMPARISONS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** The parameter `created` is an instant or a range of instants. */
function createdConditions(tx: TransactionSql, params: Params) {
  if (typeof params['created'] === 'string') {
    const created = integer(params, 'created');
    return created === null ? [] : [tx`created = ${created}`];
  }
  const range = group(params, 'created');
  return Object.entries(COMPARISONS).flatMap(([name, sign]) => {
    const bound = integer(range, name);
    return bound === null ? [] : [tx`created ${tx.unsafe(sign)} ${bound}`];
  });
}
