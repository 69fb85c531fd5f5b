import { and, eq, getTableColumns, sql } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Db } from '../client.ts';

/** Selects or joins the row with this id. Always compares the merchant's id, too. */
export function isRecord(
  table: { merchantId: AnyPgColumn; id: AnyPgColumn },
  merchantId: string | AnyPgColumn,
  id: string | AnyPgColumn | SQL,
) {
  return and(eq(table.merchantId, merchantId), eq(table.id, id));
}

/** Returns the SQL condition that each of these columns of `table` has its value. */
export function hasValues<Table extends PgTable>(
  table: Table,
  values: {
    [Name in keyof Table['$inferSelect']]?:
      | NonNullable<Table['$inferSelect'][Name]>
      | AnyPgColumn
      | SQL;
  },
) {
  const columns = Object.entries(getTableColumns(table)).filter(([name]) => name in values);
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
