import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as runMigrations } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';

/** The advisory lock's key. The number is arbitrary. */
const MIGRATION_LOCK = 7_303_001;

/**
 * Migrates the database to the schema of this build. A repeat changes nothing. An advisory lock serialises
 * processes that start together. Throws if the database is unreachable.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const client = postgres(databaseUrl, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    // A session lock, which Postgres releases when the connection closes.
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await runMigrations(drizzle({ client }), {
      migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)),
    });
  } finally {
    await client.end({ timeout: 5 });
  }
}
