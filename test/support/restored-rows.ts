import { sql } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';

/**
 * Copies every row of the service, as a backup does. The returned function restores the copy and drops newer rows. The
 * gateway's own schema and Temporal keep their data.
 */
export async function dumpRows(db: Db): Promise<() => Promise<void>> {
  const found = await db.execute<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = 'public'`,
  );
  const tables = found.map(({ name }) => ({
    table: sql.identifier(name),
    copy: sql`dump.${sql.identifier(name)}`,
  }));
  await db.execute(sql`drop schema if exists dump cascade`);
  await db.execute(sql`create schema dump`);
  for (const { table, copy } of tables) {
    await db.execute(sql`create table ${copy} as select * from public.${table}`);
  }
  return () =>
    db.transaction(async (tx) => {
      // Without triggers and foreign keys, the order of the tables does not matter.
      await tx.execute(sql`set local session_replication_role = replica`);
      for (const { table, copy } of tables) {
        await tx.execute(sql`delete from public.${table}`);
        await tx.execute(sql`insert into public.${table} select * from ${copy}`);
      }
    });
}

/** Restores the rows and makes the gateway's charges 6 s older, because the command leaves out those of the last 5 s. */
export async function restoreOldRows(db: Db, restore: () => Promise<void>): Promise<void> {
  await restore();
  for (const table of ['charge', 'refund']) {
    await db.execute(sql.raw(`update sandbox_gateway.${table} set created_at = created_at - 6000`));
  }
}
