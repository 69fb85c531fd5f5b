import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { PgAsyncTransaction } from 'drizzle-orm/pg-core';
import type postgres from 'postgres';
import { openDriver } from './connection.ts';
import { openPool } from './pool.ts';
import type { PoolUse } from './pool.ts';

/** A database or a transaction: the first parameter of every repository function. */
export type Db = PostgresJsDatabase;

export interface DbHandle {
  db: Db;
  close(timeoutMs?: number): Promise<void>;
  readonly poolUse: () => PoolUse;
}

export interface DbOptions {
  url: string;
  poolSize: number;
  applicationName: string;
  /** Time limit of a statement in ms. Default 15,000. */
  statementTimeoutMs?: number;
  /** Called before each statement, transaction and COMMIT, which are not sent if it throws. */
  beforeEach?: () => void;
}

/**
 * Throws if a pooler such as PgBouncer drops the settings of our sessions. In its transaction mode, statements that one
 * session prepared fail in another.
 */
export async function requireDirect(db: Db): Promise<void> {
  const [limit] = await db.execute<{ source: string }>(
    sql`select source from pg_settings where name = 'statement_timeout'`,
  );
  if (limit?.source !== 'client') throw new Error(NOT_DIRECT);
}

const NOT_DIRECT =
  'DATABASE_URL must lead to Postgres itself: the connection drops its settings, as PgBouncer does. In its transaction mode our prepared statements and time limits do not work.';

/**
 * Creates a connection pool. A statement fails after 15 s, or 5 s of waiting for a lock; a transaction that is idle
 * for 10 s is rolled back. The pool repeats nothing: the caller must retry.
 */
export function createDb(options: DbOptions): DbHandle {
  const settings: postgres.Options<Record<string, never>> = {
    max: options.poolSize,
    connect_timeout: 5,
    idle_timeout: 60,
    // Ignore notices such as "relation already exists".
    onnotice: () => undefined,
    // `true` queries array types at connect, which fails uncaught while Postgres starts or stops.
    fetch_types: false,
    connection: {
      application_name: options.applicationName,
      TimeZone: 'UTC',
      statement_timeout: options.statementTimeoutMs ?? 15_000,
      lock_timeout: 5_000,
      idle_in_transaction_session_timeout: 10_000,
    },
  };
  const { client, close, use } = openPool(
    () => openDriver(options.url, settings),
    options.poolSize,
    options.beforeEach ?? (() => undefined),
  );
  return { db: drizzle({ client }), close: (timeoutMs = 5_000) => close(timeoutMs), poolUse: use };
}

/** Creates one connection, with a time limit of 2 s for a statement: metrics and probes answer while the pool is full. */
export function createProbeDb(url: string, applicationName: string): DbHandle {
  return createDb({ url, poolSize: 1, applicationName, statementTimeoutMs: 2_000 });
}

/**
 * Runs `work` in the transaction `db`, or in a new one. There is no savepoint: if `work` fails, the caller must let the
 * transaction fail.
 */
export function inTransaction<T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> {
  return db instanceof PgAsyncTransaction ? work(db) : db.transaction(work);
}
