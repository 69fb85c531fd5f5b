import type { Sql } from 'postgres';

/** The error code of Postgres for a write in a read-only session or on a standby. */
const READ_ONLY = '25006';
/** Time in ms for the running work of a replaced pool, which then fails and may be repeated. */
const REPLACED_TIMEOUT_MS = 5_000;

export interface ReplaceablePool {
  /** The first pool. The driver's settings of all pools are those of the first. */
  readonly first: Sql;
  use<T>(work: (client: Sql) => PromiseLike<T>): Promise<T>;
  close(timeoutMs: number): Promise<void>;
}

/**
 * Creates a pool that is replaced after a write in a read-only session: Postgres sets `default_transaction_read_only`
 * when a session begins, so the session would refuse every later write.
 */
export function createReplaceablePool(open: () => Sql): ReplaceablePool {
  const first = open();
  let current = first;
  const closing = new Set<Promise<void>>();

  /** Does nothing if the pool was already replaced. Running work continues on the old connections. */
  const replace = (refused: Sql): void => {
    if (refused !== current) return;
    current = open();
    // Drizzle sets the parsers of the client that it gets, which is the first.
    Object.assign(current.options.parsers, first.options.parsers);
    Object.assign(current.options.serializers, first.options.serializers);
    const closed = refused
      .end({ timeout: REPLACED_TIMEOUT_MS / 1000 })
      .finally(() => closing.delete(closed));
    closing.add(closed);
  };

  return {
    first,
    use: async (work) => {
      const used = current;
      try {
        return await work(used);
      } catch (error) {
        if (isReadOnly(error)) replace(used);
        throw error;
      }
    },
    close: async (timeoutMs) => {
      await Promise.all([current.end({ timeout: timeoutMs / 1000 }), ...closing]);
    },
  };
}

function isReadOnly(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if ('code' in error && error.code === READ_ONLY) return true;
  }
  return false;
}
