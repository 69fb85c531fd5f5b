import postgres from 'postgres';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { createDb } from '../../db/client.ts';
import { migrate, requireMigrated } from '../../db/migrate.ts';
import { createTestDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

/** Opens a session with a name, and returns what a report about the session must contain. */
async function openSession(applicationName: string) {
  const sql = postgres(database.url, {
    max: 1,
    connection: { application_name: applicationName },
  });
  const [session] = await sql<{ pid: number; since: Date }[]>`
    select pid, backend_start as since from pg_stat_activity where pid = pg_backend_pid()`;
  const named = `process ${session!.pid} (${applicationName}), connected since ${session!.since.toISOString()}`;
  return { sql, named };
}

it('a start that waits for the migration lock names the session that holds it, once', async () => {
  const { sql, named } = await openSession('another-start');
  await sql`select pg_advisory_lock(7303001)`;

  const reports: string[] = [];
  const options = {
    applicationName: 'waiting-start',
    report: (line: string) => reports.push(line),
  };
  let isMigrated = false;
  const migration = migrate(database.url, options).then(() => (isMigrated = true));
  await vi.waitFor(() => expect(reports).toHaveLength(1), { timeout: 60_000 });
  expect(reports).toEqual([`the migration waits for a lock of the database session of ${named}`]);
  expect(isMigrated).toBe(false);

  await sql`select pg_advisory_unlock(7303001)`;
  await migration;
  expect(reports).toHaveLength(1);
  await sql.end();
});

it('a migration that gets no lock says so, lets the waiting statements pass, and runs later', async () => {
  const empty = await createTestDatabase();
  const holder = postgres(empty.url, { max: 1, onnotice: () => undefined });
  await holder`drop schema public cascade`;
  await holder`drop schema drizzle cascade`;
  await holder`create schema public`;
  const held = await holder.reserve();
  await held`begin`;
  await held`create schema drizzle`;

  const reports: string[] = [];
  const migration = migrate(empty.url, {
    applicationName: 'waiting-start',
    report: (line) => reports.push(line),
    tableLock: { waitMs: 50, pauseMs: 20, tries: 1_000 },
  });
  await vi.waitFor(() => expect(reports.length).toBeGreaterThan(1), { timeout: 60_000 });
  expect(reports[0]).toBe('the migration got no lock within 50 ms; again in 20 ms');
  const handle = createDb({ url: empty.url, poolSize: 1, applicationName: 'test' });
  await expect(requireMigrated(handle.db)).rejects.toThrow(/does not have the schema/);

  await held`rollback`;
  await migration;
  await requireMigrated(handle.db);
  held.release();
  await Promise.all([handle.close(), holder.end()]);
  await empty.drop();
});

it('a database from before the first release is refused, and keeps its rows', async () => {
  const older = await createTestDatabase();
  const tables = postgres(older.url, { max: 1, onnotice: () => undefined });
  try {
    await tables`drop schema public cascade`;
    await tables`drop schema if exists drizzle cascade`;
    await tables`create schema public`;
    await tables`create table credential as select 'kept' as key_id`;
    const migration = migrate(older.url, { applicationName: 'start', report: () => undefined });
    await expect(migration).rejects.toThrow(
      /^The database has the tables of a version from before the first release\. Use an empty database/,
    );
    expect(await tables`select key_id from credential`).toEqual([{ key_id: 'kept' }]);
  } finally {
    await tables.end();
    await older.drop();
  }
});
