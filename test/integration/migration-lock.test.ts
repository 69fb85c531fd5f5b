import postgres from 'postgres';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
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
  await expect.poll(() => reports).toHaveLength(1);
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
  await expect.poll(() => reports.length).toBeGreaterThan(1);
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

function addMigration(folder: string, name: string, statement: string): void {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, 'migration.sql'), statement);
}

/** A folder with this release's migration and one that builds the index `later__idx` beside the writers. */
function withIndexMigration(): string {
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'));
  cpSync('db/migrations', folder, { recursive: true });
  const build =
    'create index concurrently if not exists later__idx on payment_attempt (amount_minor)';
  addMigration(folder, '21000101000000_later', build);
  return folder;
}

it('a migration that is older than the latest applied one is applied, once', async () => {
  const merged = await createTestDatabase();
  const folder = withIndexMigration();
  const options = { applicationName: 'start', report: () => undefined, folder };
  const sql = postgres(merged.url, { max: 1, onnotice: () => undefined });
  try {
    await migrate(merged.url, options);
    addMigration(folder, '20990101000000_merged', 'create table merged (id text)');
    await migrate(merged.url, options);
    await migrate(merged.url, options);
    expect(await sql`select id from merged`).toEqual([]);
    expect(await sql`select count(*)::int from drizzle.__drizzle_migrations`).toEqual([
      { count: 3 },
    ]);
  } finally {
    await sql.end();
    await merged.drop();
    rmSync(folder, { recursive: true });
  }
});

it('an index is built beside a writer and a second migration, also after an interrupted build', async () => {
  const filled = await createTestDatabase();
  const folder = withIndexMigration();
  const sql = postgres(filled.url, { max: 3, onnotice: () => undefined });
  const run = (name: string) => {
    const options = { applicationName: name, report: () => undefined, folder };
    return migrate(filled.url, { ...options, tableLock: { waitMs: 50, pauseMs: 20, tries: 1 } });
  };
  const validity = () =>
    sql`select indisvalid from pg_index where indexrelid = 'later__idx'::regclass`;
  const writer = await sql.reserve();
  try {
    await writer`begin`;
    await writer`lock table payment_attempt in row exclusive mode`;
    const interrupted = run('interrupted').catch((error: unknown) => String(error));
    await expect.poll(validity).toEqual([{ indisvalid: false }]);
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'interrupted'`;
    expect(await interrupted).toMatch(/connection/);

    const both = Promise.all([run('first'), run('second')]);
    const waits = () => sql`
      select application_name ~ 'first|second' as waits from pg_stat_activity
      where datname = current_database() and wait_event = 'virtualxid'`;
    await expect.poll(waits).toEqual([{ waits: true }]);
    // Nothing queues behind the build that waits: another session still writes.
    await sql`update payment_attempt set lookups = 0`;
    await writer`commit`;
    await both;
    expect(await validity()).toEqual([{ indisvalid: true }]);
    expect(await sql`select count(*)::int from drizzle.__drizzle_migrations`).toEqual([
      { count: 2 },
    ]);
  } finally {
    writer.release();
    await sql.end();
    await filled.drop();
    rmSync(folder, { recursive: true });
  }
});
