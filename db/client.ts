import { drizzle } from 'drizzle-orm/postgres-js';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { PgTransaction } from 'drizzle-orm/pg-core';
import postgres from 'postgres';
import { LastingSocket } from './lasting-socket.ts';
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
 * Creates a connection pool. A statement fails after 15 s, or 5 s of waiting for a lock; a transaction that is idle
 * for 10 s is rolled back. The pool repeats nothing: the caller must retry.
 */
export function createDb(options: DbOptions): DbHandle {
  const settings: postgres.Options<Record<string, never>> & { socket: typeof openSocket } = {
    max: options.poolSize,
    connect_timeout: 5,
    idle_timeout: 60,
    // Ignore notices such as "relation already exists".
    onnotice: () => undefined,
    // `true` queries array types at connect, which fails uncaught while Postgres starts.
    fetch_types: false,
    socket: openSocket,
    connection: {
      application_name: options.applicationName,
      TimeZone: 'UTC',
      statement_timeout: options.statementTimeoutMs ?? 15_000,
      lock_timeout: 5_000,
      idle_in_transaction_session_timeout: 10_000,
    },
  };
  const { client, close, use } = openPool(
    () => postgres(options.url, settings),
    options.poolSize,
    options.beforeEach ?? (() => undefined),
  );
  return { db: drizzle({ client }), close: (timeoutMs = 5_000) => close(timeoutMs), poolUse: use };
}

/**
 * Runs `work` in the transaction `db`, or in a new one. There is no savepoint: if `work` fails, the caller must let the
 * transaction fail.
 */
export function inTransaction<T>(db: Db, work: (tx: Db) => Promise<T>): Promise<T> {
  return db instanceof PgTransaction ? work(db) : db.transaction(work);
}

/** For the driver's option `socket`, which its types do not declare. */
function openSocket({ host, port, path }: { host: string[]; port: number[]; path?: string }) {
  const socket = new LastingSocket();
  if (path) return socket.connect(path);
  return socket.connect(port[0] ?? 5432, host[0] ?? 'localhost');
}
