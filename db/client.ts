import { drizzle } from 'drizzle-orm/postgres-js';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { PgTransaction } from 'drizzle-orm/pg-core';
import postgres from 'postgres';
import { LastingSocket } from './lasting-socket.ts';
import { withPreparedStatements } from './prepared-statements.ts';

/** A database or a transaction of it: what every repository function takes first. */
export type Db = PostgresJsDatabase;

export interface DbHandle {
  db: Db;
  /** Waits up to `timeoutMs` for running queries, then closes every connection. */
  close(timeoutMs?: number): Promise<void>;
}

export interface DbOptions {
  url: string;
  /** Connections kept at the most. */
  poolSize: number;
  applicationName: string;
}

/**
 * A connection pool. Nothing connects before the first query; a server that went away is connected
 * to again by the next query. A statement that runs for 15 s or waits 5 s for a lock fails, and a
 * transaction whose process stands still for 10 s is rolled back: the caller's own retry is better
 * than a stuck connection, and than locks that nobody gives free.
 */
export function createDb(options: DbOptions): DbHandle {
  const settings: postgres.Options<Record<string, never>> & { socket: typeof openSocket } = {
    max: options.poolSize,
    connect_timeout: 5,
    idle_timeout: 60,
    // Notices go nowhere: there is nobody to act on "relation already exists".
    onnotice: () => undefined,
    // Asking for array types at each connect fails outside of any query when Postgres is starting.
    fetch_types: false,
    socket: openSocket,
    connection: {
      application_name: options.applicationName,
      TimeZone: 'UTC',
      statement_timeout: 15_000,
      lock_timeout: 5_000,
      idle_in_transaction_session_timeout: 10_000,
      // A generic plan would not know the values that partial indexes are for.
      plan_cache_mode: 'force_custom_plan',
    },
  };
  const client = postgres(options.url, settings);
  return {
    db: drizzle({ client: withPreparedStatements(client) }),
    close: (timeoutMs = 5_000) => client.end({ timeout: timeoutMs / 1000 }),
  };
}

/**
 * Does `work` in the caller's transaction, if `db` is one, and else in one of its own. No savepoint: work
 * that fails has to fail the whole transaction.
 */
export function inTransaction<T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> {
  return isTransaction(db) ? work(db) : db.transaction(work);
}

export function isTransaction(db: Db): boolean {
  return db instanceof PgTransaction;
}

/** Not part of the driver's types: it is called for each connection, with its own settings. */
function openSocket({ host, port, path }: { host: string[]; port: number[]; path?: string }) {
  const socket = new LastingSocket();
  if (path) return socket.connect(path);
  return socket.connect(port[0] ?? 5432, host[0] ?? 'localhost');
}
