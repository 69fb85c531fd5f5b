import type { ISql, ParameterOrJSON, Sql } from 'postgres';

/** Postgres' code for a write in a read-only session or on a standby. */
const READ_ONLY = '25006';
/** Time in s for the running work of a replaced pool, which then fails and may be repeated. */
const REPLACED_TIMEOUT_S = 5;
/** A statement with more parameters inserts many rows, and its text depends on their number. */
const MAX_PREPARED_PARAMETERS = 100;

/** Statements and transactions that run or wait for a connection, and the most connections. */
export interface PoolUse {
  readonly used: number;
  readonly waiting: number;
  readonly size: number;
}

type Values = ParameterOrJSON<never>[];
type Work = (transaction: ISql) => unknown;
type Transaction = ISql & { savepoint?: (work: Work) => unknown };

/**
 * Returns the client that Drizzle uses, and closes it. `beforeEach` runs before each statement, transaction and COMMIT.
 *
 * The driver's own pool differs in three ways, each with a test: it may send statements into another caller's
 * transaction; it parses each statement at every execution; and it keeps sessions that are read-only for ever.
 */
export function openPool(open: () => Sql, connections: number, beforeEach: () => void) {
  const turns = createTurns(connections);
  const closing = new Set<Promise<void>>();
  let current = open();
  const { options } = current;

  const use = <T>(work: (pool: Sql) => PromiseLike<T>) =>
    turns.take(async () => {
      const used = current;
      try {
        return await work(used);
      } catch (error) {
        if (used === current && isReadOnly(error)) replace();
        throw error;
      }
    });
  /** Running work continues on the old connections. */
  const replace = () => {
    const closed = current
      .end({ timeout: REPLACED_TIMEOUT_S })
      .finally(() => closing.delete(closed));
    closing.add(closed);
    current = open();
    // Drizzle has set the parsers of the first pool.
    Object.assign(current.options.parsers, options.parsers);
    Object.assign(current.options.serializers, options.serializers);
  };
  const statement = (on: ISql, text: string, parameters: Values = []) => {
    beforeEach();
    const prepare = parameters.length > 0 && parameters.length <= MAX_PREPARED_PARAMETERS;
    return on.unsafe(text, parameters, { prepare });
  };
  const inTransaction = (work: Work) => async (transaction: Transaction) => {
    const client = {
      // Sent at the call. Drizzle alone sends `execute`, and a write without `returning`, a microtask later than a select.
      unsafe: (text: string, parameters?: Values) =>
        statement(transaction, text, parameters).execute(),
      savepoint: (nested: Work) => transaction.savepoint?.(inTransaction(nested)),
    };
    const result = await work(client as unknown as ISql);
    beforeEach();
    return result;
  };
  const client = {
    options,
    unsafe: (text: string, parameters?: Values) => ({
      // oxlint-disable-next-line unicorn/no-thenable -- Drizzle awaits a statement, and the driver sends it only then
      then: (...handlers: Parameters<Promise<unknown>['then']>) =>
        use((pool) => statement(pool, text, parameters)).then(...handlers),
      values: () => use((pool) => statement(pool, text, parameters).values()),
    }),
    begin: (work: Work) =>
      use((pool) => {
        beforeEach();
        return pool.begin(inTransaction(work));
      }),
  };
  return {
    client: client as unknown as Sql,
    use: turns.use,
    /** Waits up to `timeoutMs` for running work, then closes every connection. */
    close: async (timeoutMs: number) => {
      await Promise.all([current.end({ timeout: timeoutMs / 1000 }), ...closing]);
    },
  };
}

/** `take` runs at most `atOnce` calls of `work` at a time, for less CPU than the package p-queue. */
function createTurns(atOnce: number) {
  let free = atOnce;
  const waiting: (() => void)[] = [];
  return {
    use: (): PoolUse => ({ used: atOnce - free, waiting: waiting.length, size: atOnce }),
    take: async <T>(work: () => PromiseLike<T>): Promise<T> => {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else free += 1;
      }
    },
  };
}

function isReadOnly(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if ('code' in error && error.code === READ_ONLY) return true;
  }
  return false;
}
