import { and, eq, getTableColumns } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn, PgTable } from 'drizzle-orm/pg-core';

/**
 * Returns the SQL condition that selects or joins the row of `table` with this id. A row belongs to one
 * merchant, so the condition always contains the merchant's id.
 */
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
