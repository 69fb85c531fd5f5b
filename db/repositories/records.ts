import { and, eq, getColumns, sql } from 'drizzle-orm';
import type { InferSelectModel, SQL } from 'drizzle-orm';
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core';
import { isStorable } from '../../domain/storable-text.ts';
import type { Db } from '../client.ts';

type RecordTable = PgTable & { merchantId: AnyPgColumn; id: AnyPgColumn };

/** SQL of an instant in epoch ms. */
export const timestamp = (at: number): SQL => sql`${new Date(at).toISOString()}::timestamptz`;

/** Selects or joins the row with this id. Always compares the merchant's id, too. */
export function isRecord(
  table: Pick<RecordTable, 'merchantId' | 'id'>,
  merchantId: string | AnyPgColumn,
  id: string | AnyPgColumn | SQL,
) {
  return and(eq(table.merchantId, merchantId), eq(table.id, id));
}

/** Returns the merchant's row of `table`; null for an unknown id and for another merchant's id. */
export async function findRecord<Table extends RecordTable>(
  db: Db,
  table: Table,
  merchantId: string,
  id: string,
): Promise<InferSelectModel<Table> | null> {
  // Postgres refuses NUL characters and lone surrogates, which callers of the API may give in an id.
  if (!isStorable(id)) return null;
  const [row] = await db
    .select()
    .from<PgTable>(table)
    .where(isRecord(table, merchantId, id));
  return (row as InferSelectModel<Table> | undefined) ?? null;
}

/** Returns the SQL condition that each of these columns of `table` has its value. */
export function hasValues<Table extends PgTable>(
  table: Table,
  values: {
    [Name in keyof InferSelectModel<Table>]?:
      | NonNullable<InferSelectModel<Table>[Name]>
      | AnyPgColumn
      | SQL;
  },
) {
  const columns = Object.entries(getColumns(table)).filter(([name]) => name in values);
  return and(...columns.map(([name, column]) => eq(column, values[name])));
}

/** Returns the SQL condition of the first `limit` rows that no other transaction has locked; locks them. */
export function areFirst(
  db: Db,
  table: PgTable,
  {
    condition,
    order = [],
    limit,
  }: { condition: SQL | undefined; order?: (SQL | AnyPgColumn)[]; limit: number },
): SQL {
  const rows = db
    .select({ row: sql`${table}.ctid` })
    .from(table)
    .where(condition)
    .orderBy(...order)
    .limit(limit)
    .for('update', { skipLocked: true });
  return sql`${table}.ctid in (${rows})`;
}
