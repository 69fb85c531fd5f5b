// npm run bench:migrations: fills a database of its own with billing cycles, applies one migration of each kind that
// test/architecture/migrations.test.ts allows, and one that it forbids, and prints how long a writer beside it waits.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { migrate } from '../../db/migrate.ts';
import { freePort } from '../embedded/ports.ts';
import { postgresService, postgresUrl } from '../embedded/postgres.ts';
import { supervise } from '../embedded/services.ts';
import { commandLine, wholeNumber } from '../../cli/command-line/options.ts';
import { grouped, print, runScript } from '../../cli/command-line/terminal.ts';
import { distributionOf } from './measure/percentiles.ts';
import { printHeading, printRow, shown } from './report/text.ts';

const ROWS_AT_ONCE = 250_000;
const IDLE_MS = 10_000;

const CHANGES: readonly (readonly [label: string, ...statements: string[]])[] = [
  ['a nullable column', 'alter table payment_attempt add column a text'],
  [
    'a column with a default',
    'alter table payment_attempt add column b integer not null default 7',
  ],
  [
    'a table that refers to it',
    'create table later (m text, i text, foreign key (m, i) references payment_attempt (merchant_id, id))',
  ],
  [
    'a check, not yet valid',
    'alter table payment_attempt add constraint later__ck check (b > 0) not valid',
  ],
  ['its validation', 'alter table payment_attempt validate constraint later__ck'],
  [
    'an index, concurrently',
    'create index concurrently if not exists later__idx on payment_attempt (created_at)',
  ],
  ['an index (forbidden)', 'create index locked__idx on payment_attempt (created_at)'],
];

const program = commandLine('run bench:migrations', 'How long a writer waits for each migration.')
  .option('--rows <count>', 'attempts, and as many intents', wholeNumber, 10_000_000)
  .parse();

await runScript(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'perennial-migrations-'));
  const settings = {
    dataFolder: join(folder, 'postgres'),
    logFile: join(folder, 'postgres.log'),
    port: await freePort(),
    password: 'bench',
    isDurable: true,
  };
  const server = supervise(postgresService(settings, print), { report: print });
  await server.start();
  const url = postgresUrl(settings, 'postgres');
  const sql = open(url);
  try {
    await migrate(url, { applicationName: 'bench', report: print });
    await measure(sql, url, folder, program.opts<{ rows: number }>().rows);
    return 0;
  } finally {
    await sql.end({ timeout: 5 });
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** A connection without foreign keys, so that a cycle needs no customer and subscription. */
function open(url: string): postgres.Sql {
  return postgres(url, { max: 1, connection: { session_replication_role: 'replica' } });
}

async function measure(sql: postgres.Sql, url: string, folder: string, rows: number) {
  const migrations = join(folder, 'migrations');
  cpSync('db/migrations', migrations, { recursive: true });

  printHeading('A writer pays cycles beside the migration', [
    'seconds',
    'p50 ms',
    'p99 ms',
    'max ms',
  ]);
  const row = async (label: string, work: () => Promise<unknown>) => {
    const { seconds, latencies } = await beside(url, work);
    const { p50, p99, max } = distributionOf(latencies);
    printRow(label, [shown(seconds), shown(p50), shown(p99), shown(max)]);
  };
  const idle = () => sleep(IDLE_MS);
  await row('nothing, in an empty database', idle);
  print(`· writing ${grouped(rows)} paid cycles`);
  for (let first = 0; first < rows; first += ROWS_AT_ONCE) {
    await payCycles(sql, first, Math.min(ROWS_AT_ONCE, rows - first));
  }
  await sql`vacuum analyze`;
  const [size] = await sql<{ gb: number }[]>`
    select pg_total_relation_size('payment_attempt') / 1e9::float as gb`;
  await row(`nothing, with ${grouped(rows)} attempts, ${shown(size?.gb)} GB`, idle);
  for (const [index, [label, ...statements]] of CHANGES.entries()) {
    const later = join(migrations, `${21_000_101_000_000 + index}_later`);
    mkdirSync(later);
    writeFileSync(join(later, 'migration.sql'), statements.join('\n--> statement-breakpoint\n'));
    const options = { applicationName: 'bench', report: print, folder: migrations };
    await row(label, () => migrate(url, options));
  }
}

/** Pays one cycle after another on a connection of its own while `work` runs; the latencies are in ms. */
async function beside(url: string, work: () => Promise<unknown>) {
  const writer = open(url);
  const latencies: number[] = [];
  const startedAt = performance.now();
  const over = new AbortController();
  const writes = (async () => {
    while (!over.signal.aborted) {
      const sentAt = performance.now();
      await payCycles(writer, Math.round(1e12 + sentAt * 1_000), 1);
      latencies.push(performance.now() - sentAt);
    }
  })();
  await Promise.all([work().finally(() => over.abort()), writes]);
  await writer.end({ timeout: 5 });
  return { seconds: (performance.now() - startedAt) / 1_000, latencies };
}

/** Writes the intents and attempts of `count` paid cycles from number `first` on, 12 for each subscription. */
async function payCycles(sql: postgres.Sql, first: number, count: number): Promise<void> {
  const last = first + count - 1;
  await sql.begin((tx) => [
    tx`
      insert into payment_intent (merchant_id, id, subscription_id, cycle_number, customer_id, amount_minor, currency,
        presentment_currency, status, customer_details, created_at, due_at, succeeded_at)
      select 'mer_1', 'pi_' || lpad(n::text, 26, '0'), 'sub_' || lpad((n / 12)::text, 26, '0'), n % 12, 'cus_' || lpad((n / 24)::text, 26, '0'),
        1999, 'EUR', 'EUR', 'SUCCESS', '{}', now(), now(), now()
      from generate_series(${first}::bigint, ${last}::bigint) n`,
    tx`
      insert into payment_attempt (merchant_id, id, intent_id, attempt_number, trigger, gateway, gateway_key,
        gateway_method_id, payment_method_id, state, amount_minor, currency, gateway_charge_id, created_at, settled_at)
      select 'mer_1', 'att_' || lpad(n::text, 26, '0'), 'pi_' || lpad(n::text, 26, '0'), 1, 'scheduled', 'sandbox', 'key_' || lpad(n::text, 26, '0'),
        'pm_1', 'pm_1', 'SUCCEEDED', 1999, 'EUR', 'ch_' || lpad(n::text, 26, '0'), now(), now()
      from generate_series(${first}::bigint, ${last}::bigint) n`,
  ]);
}
