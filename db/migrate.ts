import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type { MigrationMeta } from 'drizzle-orm/migrator';
import postgres from 'postgres';
import type { Db } from './client.ts';
import { openDriver } from './connection.ts';

const MIGRATIONS = fileURLToPath(new URL('./migrations', import.meta.url));
/** The advisory lock's key. The number is arbitrary. */
const MIGRATION_LOCK = 7_303_001;
/** Interval in ms between two queries for the sessions that block the migration. */
const LOOK_EVERY_MS = 2_000;
/** Interval in ms between two tries for the advisory lock. */
const TRY_EVERY_MS = 200;
/** Time limit in ms of one statement of a migration, such as the build of an index. */
const STATEMENT_WITHIN_MS = 4 * 3_600_000;
/** Waits in ms for a table's lock: statements of the running processes queue behind a waiting migration. */
const TABLE_LOCK = { waitMs: 4_000, pauseMs: 5_000, tries: 60 } as const;

export interface MigrateOptions {
  readonly applicationName: string;
  /** Receives one line for each database session that blocks the migration for 2 s, and for each repetition. */
  readonly report: (line: string) => void;
  /** For tests. Default: 60 tries for a table's lock, of 4 s each, with pauses of 5 s. */
  readonly tableLock?: Readonly<Record<keyof typeof TABLE_LOCK, number>>;
  /** For tests and benchmarks. Default: the folder of this build's migrations. */
  readonly folder?: string;
}

/**
 * Migrates the database to this build's schema, under an advisory lock. A repeat changes nothing. Throws if the
 * database is unreachable.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions): Promise<void> {
  const { waitMs } = options.tableLock ?? TABLE_LOCK;
  const client = connect(databaseUrl, options.applicationName, waitMs);
  let endReports: (() => Promise<void>) | undefined;
  try {
    const [session] = await client<{ pid: number }[]>`select pg_backend_pid() as pid`;
    if (session) endReports = reportBlockers(databaseUrl, session.pid, options);
    await takeLock(client);
    await runUntilLocked(client, options);
  } finally {
    await endReports?.();
    await client.end({ timeout: 5 });
  }
}

/** Throws an error that says what to do if the database has not all migrations of this build. */
export async function requireMigrated(db: Db): Promise<void> {
  if (!(await isMigrated(db))) throw new Error(NOT_MIGRATED);
}

/** True if the database has all migrations of this build. It may have more, those of a later release. */
export async function isMigrated(db: Db): Promise<boolean> {
  const [table] = await db.execute<{ name: string | null }>(
    sql`select to_regclass('drizzle.__drizzle_migrations')::text as name`,
  );
  if (!table?.name) return false;
  const applied = await db.execute<{ at: string }>(sql.raw(SELECT_APPLIED));
  return missingFrom(applied, MIGRATIONS).length === 0;
}

const SELECT_APPLIED = 'select created_at::text as at from drizzle.__drizzle_migrations';

function missingFrom(applied: readonly { at: string }[], folder: string): MigrationMeta[] {
  const dates = new Set(applied.map(({ at }) => Number(at)));
  const migrations = readMigrationFiles({ migrationsFolder: folder });
  return migrations.filter(({ folderMillis }) => !dates.has(folderMillis));
}

const NOT_MIGRATED =
  'The database does not have the schema of this release. Run the migration first: the service "migrate" of docker-compose.yml, or node --import tsx migrate.ts.';

const FROM_BEFORE_RELEASES =
  'The database has the tables of a version from before the first release. Use an empty database; for npm start, remove the folder .data.';

/**
 * Takes a session lock, which Postgres releases when the connection closes. It does not wait inside a statement: the
 * build of an index waits for every older statement to end, and so for one that waits for this lock.
 */
async function takeLock(client: postgres.Sql): Promise<void> {
  const tryLock = () =>
    client<{ taken: boolean }[]>`select pg_try_advisory_lock(${MIGRATION_LOCK}) as taken`;
  while (!(await tryLock())[0]?.taken) await sleep(TRY_EVERY_MS);
}

async function runUntilLocked(client: postgres.Sql, options: MigrateOptions): Promise<void> {
  const { waitMs, pauseMs, tries } = options.tableLock ?? TABLE_LOCK;
  for (let run = 1; ; run += 1) {
    try {
      return await applyMissing(client, options.folder ?? MIGRATIONS);
    } catch (error) {
      const code = error instanceof postgres.PostgresError ? error.code : undefined;
      if (code === '42P07') throw new Error(FROM_BEFORE_RELEASES, { cause: error });
      if (code !== '55P03' || run >= tries) throw error;
      options.report(`the migration got no lock within ${waitMs} ms; again in ${pauseMs} ms`);
      await sleep(pauseMs);
    }
  }
}

/**
 * Applies each migration that the database does not have, in a transaction of its own; also one that is older than the
 * latest. `drizzle-orm` would apply all in one, in which no index can be built beside the writers.
 */
async function applyMissing(client: postgres.Sql, folder: string): Promise<void> {
  await client`create schema if not exists drizzle`;
  await client`create table if not exists drizzle.__drizzle_migrations (
    id serial primary key, hash text not null, created_at bigint)`;
  const applied = await client.unsafe<{ at: string }[]>(SELECT_APPLIED);
  for (const migration of missingFrom(applied, folder)) {
    if (migration.sql.some((statement) => /\bconcurrently\b/i.test(statement))) {
      await buildIndexes(client, migration);
    } else {
      await client.begin(async (tx) => {
        for (const statement of migration.sql) await tx.unsafe(statement);
        await recordMigration(tx, migration);
      });
    }
  }
}

/** Builds indexes while others write. A repeat replaces the indexes that an interrupted build left unfinished. */
async function buildIndexes(client: postgres.Sql, migration: MigrationMeta): Promise<void> {
  const unfinished = await client<{ name: string }[]>`
    select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
    where not indisvalid and relnamespace = 'public'::regnamespace`;
  // A build that waits for older transactions makes no statement wait.
  await client`set lock_timeout = 0`;
  for (const { name } of unfinished) {
    const isOurs = migration.sql.some((statement) => statement.includes(name));
    if (isOurs) await client`drop index concurrently ${client(name)}`;
  }
  for (const statement of migration.sql) await client.unsafe(statement);
  await client`reset lock_timeout`;
  await recordMigration(client, migration);
}

async function recordMigration(
  client: postgres.Sql | postgres.TransactionSql,
  { hash, folderMillis }: MigrationMeta,
): Promise<void> {
  await client`
    insert into drizzle.__drizzle_migrations (hash, created_at) values (${hash}, ${folderMillis})`;
}

/** Reports each session that blocks the session `pid`, once. Returns the function that ends the reports. */
function reportBlockers(
  databaseUrl: string,
  pid: number,
  { applicationName, report }: MigrateOptions,
): () => Promise<void> {
  const client = connect(databaseUrl, applicationName, 0);
  const reported = new Set<number>();
  const look = async (): Promise<void> => {
    const blockers = await client<{ pid: number; name: string | null; since: Date | null }[]>`
      select pid, application_name as name, backend_start as since
      from pg_stat_activity
      where pid = any(pg_blocking_pids(${pid}))
        or pid in (select pid from pg_locks where locktype = 'advisory' and objid = ${MIGRATION_LOCK}
          and granted and pid <> ${pid}
            and database = (select oid from pg_database where datname = current_database()))`;
    for (const blocker of blockers) {
      if (reported.has(blocker.pid)) continue;
      reported.add(blocker.pid);
      const since = blocker.since?.toISOString() ?? 'an unknown time';
      report(
        `the migration waits for a lock of the database session of process ${blocker.pid} ` +
          `(${blocker.name || 'no application name'}), connected since ${since}`,
      );
    }
  };
  // A failed look reports nothing: the migration itself reports the failure of the database.
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_EVERY_MS);
  return async () => {
    clearInterval(timer);
    await client.end({ timeout: 0 });
  };
}

function connect(databaseUrl: string, applicationName: string, lockMs: number): postgres.Sql {
  const settings = {
    max: 1,
    connect_timeout: 5,
    // By default the driver ends a session after 30 to 60 minutes, and with it the locks.
    max_lifetime: null,
    onnotice: () => undefined,
    connection: { application_name: applicationName, lock_timeout: lockMs },
  };
  return openDriver(databaseUrl, settings, STATEMENT_WITHIN_MS);
}
