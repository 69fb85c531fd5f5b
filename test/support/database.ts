import { sql } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Closes every connection to the database and drops it. */
  drop(): Promise<void>;
}

/** Must equal `TEMPLATE_DATABASE` of `global-setup.ts`, which runs in another process. */
const TEMPLATE_DATABASE = 'perennial_template';

/**
 * Creates an empty database with the current schema and a unique name. The default server is the test
 * run's Postgres. Another server must have the template. Call `drop` in `afterAll`.
 */
export async function createTestDatabase(serverUrl = inject('postgresUrl')): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await administer(serverUrl, `create database ${name} template ${TEMPLATE_DATABASE}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    drop: () => administer(serverUrl, `drop database if exists ${name} with (force)`),
  };
}

async function administer(serverUrl: string, statement: string): Promise<void> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => undefined });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** The number of rows of every table. */
export async function countRows(db: Db): Promise<Record<string, number>> {
  const tables = await db.execute<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = 'public' order by 1`,
  );
  const counts = await db.execute<{ name: string; n: number }>(
    sql.join(
      tables.map(
        ({ name }) => sql`select ${name} as name, count(*)::int as n from ${sql.identifier(name)}`,
      ),
      sql` union all `,
    ),
  );
  return Object.fromEntries(counts.map(({ name, n }) => [name, n]));
}
