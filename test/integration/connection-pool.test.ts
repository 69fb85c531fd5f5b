import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { createDb } from '../../db/client.ts';
import { createTestDatabase } from '../support/database.ts';
import { gate } from '../support/gate.ts';

const CONNECTIONS = 2;
const LOCK = 7;

/**
 * Opens a pool of two connections, and another pool that observes the first pool and holds the advisory lock.
 */
async function pools() {
  const database = await createTestDatabase();
  const open = (applicationName: string, poolSize: number) =>
    createDb({ url: database.url, poolSize, applicationName });
  const [used, other] = [open('used', CONNECTIONS), open('other', 2)];
  onTestFinished(async () => {
    await used.close();
    await other.close();
    await database.drop();
  });
  const statesOf = async () => {
    const rows = await other.db.execute<{ state: string; waits: boolean }>(
      sql`select state, wait_event_type is not distinct from 'Lock' as waits
        from pg_stat_activity where application_name = 'used'`,
    );
    return rows.map(({ state, waits }) => (waits ? 'waiting' : state));
  };
  return { db: used.db, poolUse: used.poolUse, other: other.db, statesOf };
}

const number = sql`select ${1}::int as n`;

/** A statement that waits for the advisory lock and holds it until the end of the transaction. */
const waitForLock = sql`select pg_advisory_xact_lock(${LOCK}::int)`;

// The driver pipelines up to 100 waiting statements on each connection. The last of these statements may be a
// BEGIN.
test.for([100, 198, 199, 200])(
  'transactions begin when %i statements wait for two connections [D-§8]',
  async (count) => {
    const { db, other, statesOf } = await pools();
    // The driver pipelines only prepared statements, so both connections prepare these first.
    await Promise.all(
      Array.from({ length: CONNECTIONS }, () =>
        db.transaction(async (tx) => {
          await tx.execute(number);
          await tx.execute(waitForLock);
        }),
      ),
    );
    const [locked, unlock] = [gate(), gate()];
    const holder = other.transaction(async (tx) => {
      await tx.execute(waitForLock);
      locked.open();
      await unlock.isOpen;
    });
    await locked.isOpen;
    const started = Promise.all([db.execute(waitForLock), db.execute(waitForLock)]);
    await expect.poll(statesOf).toEqual(['waiting', 'waiting']);

    const statements = Promise.all(Array.from({ length: count }, () => db.execute(number)));
    await new Promise((resolve) => setImmediate(resolve));
    const transactions = Promise.allSettled(
      Array.from({ length: 5 }, (_, at) =>
        db.transaction(async (tx) => {
          const [row] = await tx.execute<{ n: number }>(sql`select ${at}::int as n`);
          return row?.n;
        }),
      ),
    );
    await new Promise((resolve) => setImmediate(resolve));
    unlock.open();
    await holder;

    const values = (await transactions).map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason),
    );
    expect(values).toEqual([0, 1, 2, 3, 4]);
    expect(await statements).toHaveLength(count);
    await started;
    // No transaction is left open. In an open transaction, statements of other callers would be lost.
    expect(await statesOf()).toEqual(['idle', 'idle']);
  },
);

test('statements of a transaction that are called at once are executed in this order, with rows or without [D-§8]', async () => {
  const { db } = await pools();
  const counted = await db.transaction(async (tx) => {
    await tx.execute(sql`create temporary table turn (n int) on commit drop`);
    const insert = () => tx.execute(sql`insert into turn values (${1}::int)`);
    const count = () => tx.select({ n: sql<number>`count(*)::int` }).from(sql`turn`);
    return Promise.all([insert(), count(), insert(), count()]);
  });
  expect([counted[1], counted[3]]).toEqual([[{ n: 1 }], [{ n: 2 }]]);
});

test('a pool counts its statements that run, and those that wait for a connection', async () => {
  const { db, poolUse, other } = await pools();
  expect(poolUse()).toEqual({ used: 0, waiting: 0, size: CONNECTIONS });
  const holding = gate();
  const transactions = Array.from({ length: 3 }, () =>
    db.transaction(async (tx) => {
      await tx.execute(number);
      await holding.isOpen;
    }),
  );
  await other.execute(number);
  expect(poolUse()).toEqual({ used: 2, waiting: 1, size: CONNECTIONS });
  holding.open();
  await Promise.all(transactions);
  expect(poolUse()).toEqual({ used: 0, waiting: 0, size: CONNECTIONS });
});
