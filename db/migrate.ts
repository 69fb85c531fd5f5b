import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate as runMigrations } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';

/** Any number that no other program on the same database takes: "perennial" in spirit. */
const MIGRATION_LOCK = 7_303_001;

/**
 * Brings the database to the schema of this build. Processes that start together take turns under an
 * advisory lock; running it again changes nothing. Throws when the database is out of reach.
 */
export async function migrate(databaseUrl: string): Promise<void> {
  const client = postgres(databaseUrl, { max: 1, connect_timeout: 5, onnotice: () => undefined });
  try {
    // Session lock on the only connection: released by closing it, whatever happens.
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
    await runMigrations(drizzle({ client }), {
      migrationsFolder: fileURLToPath(new URL('./migrations', import.meta.url)),
    });
  } finally {
    await client.end({ timeout: 5 });
  }
}
