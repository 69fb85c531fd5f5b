import { and, eq } from 'drizzle-orm';
import type { SQL } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';

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
