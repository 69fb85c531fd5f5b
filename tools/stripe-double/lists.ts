import type { TransactionSql } from 'postgres';
import { invalid, noSuch } from './errors.ts';
import type { StripeObject } from './errors.ts';
import { expectOnly, group, integer, text } from './form.ts';
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
  const after = text(params, 'starting_after');
  const created = group(params, 'created');
  expectOnly(created, ['gte'], 'created');
  const from = integer(created, 'gte');
  const conditions = [
    tx`account_id = ${accountId} and kind = ${kind}`,
    ...filters.flatMap((name) => {
      const value = text(params, name);
      return value === null ? [] : [tx`${tx.unsafe(`body->>'${name}'`)} = ${value}`];
    }),
    ...(from === null ? [] : [tx`created >= ${from}`]),
    ...(after === null ? [] : [tx`sequence < ${await sequenceOf(tx, accountId, kind, after)}`]),
  ];
  const rows = await tx<{ body: StripeObject }[]>`
    select body from stripe_double.object
    where true ${conditions.map((condition) => tx`and ${condition}`)}
    order by sequence desc limit ${limit + 1}`;
  return {
    object: 'list',
    data: rows.slice(0, limit).map((row) => row.body),
    has_more: rows.length > limit,
    url,
  };
}

async function sequenceOf(
  tx: TransactionSql,
  accountId: string,
  kind: Kind,
  id: string,
): Promise<string> {
  const [row] = await tx<{ sequence: string }[]>`
    select sequence from stripe_double.object
    where id = ${id} and account_id = ${accountId} and kind = ${kind}`;
  if (row === undefined) throw noSuch(KINDS[kind], id, 'starting_after');
  return row.sequence;
}
