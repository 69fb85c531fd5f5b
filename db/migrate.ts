import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as runMigrations } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import type { Db } from './client.ts';
import { openDriver } from './connection.ts';

const MIGRATIONS = {
  migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)),
};
/** The advisory lock's key. The number is arbitrary. */
const MIGRATION_LOCK = 7_303_001;
/** Interval in ms between two queries for the sessions that block the migration. */
const LOOK_EVERY_MS = 2_000;
/** Waits in ms for a table's lock: statements of the running processes queue behind a waiting migration. */
const TABLE_LOCK = { waitMs: 4_000, pauseMs: 5_000, tries: 60 } as const;

export interface MigrateOptions {
  readonly applicationName: string;
  /** Receives one line for each database session that blocks the migration for 2 s, and for each repetition. */
  readonly report: (line: string) => void;
  /** For tests. Default: 60 tries for a table's lock, of 4 s each, with pauses of 5 s. */
  readonly tableLock?: Readonly<Record<keyof typeof TABLE_LOCK, number>>;
}

/**
 * Migrates the database to this build's schema, under an advisory lock. A repeat changes nothing. Throws if the
 * database is unreachable.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions): Promise<void> {
  const client = connect(databaseUrl, options.applicationName);
  let endReports: (() => Promise<void>) | undefined;
  try {
    const [session] = await client<{ pid: number }[]>`select pg_backend_pid() as pid`;
    if (session) endReports = reportBlockers(databaseUrl, session.pid, options);
    // A session lock, which Postgres releases when the connection closes.
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
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
  const [latest] = await db.execute<{ at: string | null }>(
    sql`select max(created_at)::text as at from drizzle.__drizzle_migrations`,
  );
  const wanted = Math.max(
    ...readMigrationFiles(MIGRATIONS).map(({ folderMillis }) => folderMillis),
  );
  return Number(latest?.at ?? 0) >= wanted;
}

const NOT_MIGRATED =
  'The database does not have the schema of this release. Run the migration first: the service "migrate" of docker-compose.yml, or node --import tsx migrate.ts.';

const FROM_BEFORE_RELEASES =
  'The database has the tables of a version from before the first release. Use an empty database; for npm start, remove the folder .data.';

async function runUntilLocked(client: postgres.Sql, options: MigrateOptions): Promise<void> {
  const { waitMs, pauseMs, tries } = options.tableLock ?? TABLE_LOCK;
  await client`select set_config('lock_timeout', ${String(waitMs)}, false)`;
  for (let run = 1; ; run += 1) {
    try {
      return await runMigrations(drizzle({ client }), MIGRATIONS);
    } catch (error) {
      const code = codeOf(error);
      if (code === '42P07') throw new Error(FROM_BEFORE_RELEASES, { cause: error });
      if (code !== '55P03' || run >= tries) throw error;
      options.report(`the migration got no lock within ${waitMs} ms; again in ${pauseMs} ms`);
      await sleep(pauseMs);
    }
  }
}

function codeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof postgres.PostgresError ? cause.code : undefined;
}
/** Reports each session that blocks the session `pid`, once. Returns the function that ends the reports. */
function reportBlockers(
  databaseUrl: string,
  pid: number,
  { applicationName, report }: MigrateOptions,
): () => Promise<void> {
  const client = connect(databaseUrl, applicationName);
  const reported = new Set<number>();
  const look = async (): Promise<void> => {
    const blockers = await client<{ pid: number; name: string | null; since: Date | null }[]>`
      select pid, application_name as name, backend_start as since
      from pg_stat_activity where pid = any(pg_blocking_pids(${pid}))`;
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

function connect(databaseUrl: string, applicationName: string): postgres.Sql {
  return openDriver(databaseUrl, {
    max: 1,
    connect_timeout: 5,
    onnotice: () => undefined,
    connection: { application_name: applicationName },
  });
}
