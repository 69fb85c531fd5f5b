import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDb } from '../../db/client.ts';
import type { Db, DbHandle } from '../../db/client.ts';
import { createTestDatabase } from '../support/database.ts';

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let handle: DbHandle;

beforeAll(async () => {
  database = await createTestDatabase();
  // One connection, so that the test can read its prepared statements.
  handle = createDb({ url: database.url, poolSize: 1, applicationName: 'test' });
});
afterAll(async () => {
  await handle.close();
  await database.drop();
});

/** The connection's prepared statements that contain this word. */
async function prepared(word: string): Promise<string[]> {
  const rows = await handle.db.execute<{ statement: string }>(
    sql.raw(`select statement from pg_prepared_statements where statement like '% ${word}%'`),
  );
  return rows.map(({ statement }) => statement);
}

const increment = async (db: Db, number: number) => {
  const [row] = await db.execute<{ answer: number }>(sql`select ${number}::int + 1 as answer`);
  return row?.answer;
};

test('a statement is prepared once, also when a nested transaction runs it', async () => {
  expect(await increment(handle.db, 1)).toBe(2);
  await handle.db.transaction(async (tx) => {
    expect(await increment(tx, 2)).toBe(3);
    await tx.transaction(async (inner) => expect(await increment(inner, 3)).toBe(4));
  });
  expect(await increment(handle.db, 4)).toBe(5);
  expect(await prepared('as answer')).toEqual(['select $1::int + 1 as answer']);
});

test('a statement is not prepared when it has more than 100 parameters', async () => {
  const rows = Array.from({ length: 101 }, (_, number) => sql`(${number}::int)`);
  const [row] = await handle.db.execute<{ total: number }>(
    sql`select sum(n)::int as total from (values ${sql.join(rows, sql`, `)}) as many(n)`,
  );
  expect(row?.total).toBe(5_050);
  expect(await prepared('as total')).toEqual([]);
});

test('a statement gets one plan for all values, unless a partial index needs a value', async () => {
  const { db } = handle;
  await db.execute(sql`create table many as
    select n as id, case when n = 7 then 'OPEN' else 'PAID' end as state from generate_series(1, 20000) n`);
  await db.execute(sql`create unique index on many (id)`);
  await db.execute(sql`create index on many (id) where state = 'OPEN'`);
  await db.execute(sql`analyze many`);
  const ids = [];
  for (let id = 1; id <= 10; id += 1) {
    ids.push(...(await db.execute(sql`select id from many where id = ${id}::int`)));
    ids.push(...(await db.execute(sql`select id as open from many where state = ${'OPEN'}`)));
  }
  expect(ids).toHaveLength(20);
  const plans = await db.execute(sql`
    select statement like '%as open%' as "isPartial", generic_plans::int as one, custom_plans::int as "each"
    from pg_prepared_statements where statement like '%from many where%' order by 1`);
  expect([...plans]).toEqual([
    { isPartial: false, one: 5, each: 5 },
    { isPartial: true, one: 0, each: 10 },
  ]);
});

test('a failed transaction is rolled back and leaves its connection usable', async () => {
  const failing = handle.db.transaction(async (tx) => {
    await tx.execute(sql`create table left_behind (id int)`);
    await increment(tx, 1);
    throw new Error('no');
  });
  await expect(failing).rejects.toThrow('no');
  const [row] = await handle.db.execute<{ name: string | null }>(
    sql`select to_regclass(${'left_behind'})::text as name`,
  );
  expect(row?.name).toBeNull();
});

test('a connection has timeouts for statements, locks and idle transactions', async () => {
  const settings = await handle.db.execute<{ name: string; setting: string }>(
    sql`select name, setting from pg_settings where name in
      ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') order by name`,
  );
  expect(settings.map(({ name, setting }) => [name, setting])).toEqual([
    ['idle_in_transaction_session_timeout', '10000'],
    ['lock_timeout', '5000'],
    ['statement_timeout', '15000'],
  ]);
});
