import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as runMigrations } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';

/** The advisory lock's key. The number is arbitrary. */
const MIGRATION_LOCK = 7_303_001;
/** Interval in ms between two queries for the sessions that block the migration. */
const LOOK_EVERY_MS = 2_000;

export interface MigrateOptions {
  readonly applicationName: string;
  /** Receives one line for each database session that blocks the migration for 2 s. */
  readonly report: (line: string) => void;
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
    await runMigrations(drizzle({ client }), {
      migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)),
    }).catch((error: unknown) => {
      throw isTablePresent(error) ? new Error(FROM_BEFORE_RELEASES) : error;
    });
  } finally {
    await endReports?.();
    await client.end({ timeout: 5 });
  }
}

const FROM_BEFORE_RELEASES =
  'The database has the tables of a version from before the first release. Use an empty database; for npm start, remove the folder .data.';

function isTablePresent(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof postgres.PostgresError && cause.code === '42P07';
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
  return postgres(databaseUrl, {
    max: 1,
    connect_timeout: 5,
    onnotice: () => undefined,
    connection: { application_name: applicationName },
  });
}
