// npm run chaos: a whole system of its own, its processes killed and frozen at random, its gateway
// losing answers, its receivers failing, its clients repeating, while subscriptions fall due all the
// time. Then everybody is given time to recover, and the books are judged. Exits with 1 and names
// what is wrong otherwise.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import postgres from 'postgres';
import { InsistentClient } from './chaos/insistent-client.ts';
import { KILL_KINDS, Killer } from './chaos/killer.ts';
import { advance, live, makeGroups } from './chaos/load.ts';
import type { Group, Load } from './chaos/load.ts';
import { Random } from './chaos/random.ts';
import { isRight, recoveries, recoveryText, toMarkdown } from './chaos/report.ts';
import type { RunReport } from './chaos/report.ts';
import { settle } from './chaos/settle.ts';
import { startStack } from './chaos/stack.ts';
import type { Stack } from './chaos/stack.ts';
import { startUnreliableReceiver } from './chaos/unreliable-receiver.ts';
import { wholeNumber } from './client/options.ts';
import { isHealthy } from './client/running-start.ts';
import type { RunningStart } from './client/running-start.ts';
import { grouped, print, runScript, styled } from './client/terminal.ts';
import { openBooks } from './verify/books.ts';
import { judgeBooks } from './verify/invariants.ts';
import { printVerdict } from './verify/print-verdict.ts';
import type { Verdict } from './verify/invariants.ts';

interface Options {
  readonly cycles: number;
  readonly subscriptions: number;
  readonly seed: number;
  readonly minutes: number;
  readonly port: number;
  readonly report?: string;
  readonly keep?: boolean;
}

/** Each goes on by itself, so that something falls due at every moment. */
const CLOCKS = 12;
const REPORT_EVERY_MS = 15_000;
const WATCH_EVERY_MS = 1_000;
const UP_WITHIN_MS = 120_000;

/** What the gateway does to charges once everybody has paid for a first time. */
const FAULTS = [
  { operation: 'charge', fault: 'lose_answer', chance: 0.15 },
  // Past the client's own limit of 5 s.
  { operation: 'charge', fault: 'delay', chance: 0.05, delayMs: 6_000 },
  { operation: 'charge', fault: 'decline', chance: 0.15 },
  { operation: 'lookup', fault: 'error_500', chance: 0.05 },
  { operation: 'refund', fault: 'lose_answer', chance: 0.15 },
] as const;
const FAULT_COUNT = 1_000_000;

const program = new Command('chaos')
  .description(
    'Kills, freezes, loses and declines while subscriptions are charged; judges the books.',
  )
  .option('--cycles <count>', 'go on until so many cycles are paid', wholeNumber, 2_000)
  .option('--subscriptions <count>', 'how many live', wholeNumber, 240)
  .option('--minutes <count>', 'stop after so long, whatever is paid', wholeNumber, 60)
  .option('--seed <number>', 'the same subscriptions and the same kills again', wholeNumber, 1)
  .option('--port <number>', 'first of its five ports', wholeNumber, 21_400)
  .option('--report <file>', 'write the report as Markdown')
  .option('--keep', 'keep the data folder');

await runScript(async () => {
  const options = program.parse().opts<Options>();
  const folder = mkdtempSync(join(tmpdir(), 'perennial-chaos-'));
  print(`\n  starting a system of its own, Temporal on Postgres (data and logs in ${folder})`);
  const stack = await startStack(folder, options.port);
  let isFine = false;
  try {
    const report = await run(stack, options, folder);
    printReport(report);
    if (options.report !== undefined) writeFileSync(options.report, toMarkdown(report));
    isFine = isRight(report);
    return isFine ? 0 : 1;
  } finally {
    await stack.stop();
    if (isFine && !options.keep) rmSync(folder, { recursive: true, force: true });
    else print(`  data, logs and books are kept in ${folder}\n`);
  }
});

/** What a run is made of, from the first subscription to the last book. */
interface Surroundings {
  readonly options: Options;
  readonly start: RunningStart;
  readonly sql: postgres.Sql;
  readonly load: Load;
  readonly killer: Killer;
  readonly receiver: Awaited<ReturnType<typeof startUnreliableReceiver>>;
  readonly books: { readonly clientBook: string; readonly receiverBook: string };
}

async function run({ start }: Stack, options: Options, folder: string): Promise<RunReport> {
  const startedAt = Date.now();
  const { demo } = start;
  const sql = postgres(demo.databaseUrl, { max: 2, onnotice: () => undefined });
  const books = {
    clientBook: join(folder, 'answers.jsonl'),
    receiverBook: join(folder, 'webhooks.jsonl'),
  };
  writeFileSync(books.clientBook, '');
  const surroundings: Surroundings = {
    options,
    start,
    sql,
    load: {
      client: new InsistentClient({ ...demo, bookFile: books.clientBook }),
      random: new Random(options.seed),
      made: 0,
      paid: 0,
      pagesRepeated: 0,
      commands: 0,
    },
    killer: new Killer(start.dataDir, new Random(options.seed + 1), () => isHealthy(demo.apiUrl)),
    receiver: await startUnreliableReceiver(start.merchant(), new Random(options.seed + 2)),
    books,
  };
  try {
    const groups = await underFire(surroundings, startedAt);
    const secondsUnderFire = (Date.now() - startedAt) / 1_000;
    const wrong = await recover(surroundings, groups);
    const verdicts = await judge(surroundings);
    return {
      commit: commitOf(),
      command: `npm run chaos -- --cycles ${options.cycles} --subscriptions ${options.subscriptions} --seed ${options.seed}`,
      startedAt,
      seconds: (Date.now() - startedAt) / 1_000,
      figures: [
        ...(await figuresOf(surroundings)),
        ['under fire', `${secondsUnderFire.toFixed(0)} s`],
      ],
      recovery: await recoveries(sql, surroundings.killer.kills),
      verdicts,
      wrong,
    };
  } finally {
    await surroundings.receiver.close();
    await sql.end({ timeout: 5 });
  }
}

/** Until enough cycles are paid: load, faults and kills at once. */
async function underFire(surroundings: Surroundings, startedAt: number): Promise<Group[]> {
  const { options, start, sql, load, killer } = surroundings;
  let cycles = 0;
  const isOver = (): boolean =>
    cycles >= options.cycles || Date.now() - startedAt > options.minutes * 60_000;
  const watch = setInterval(() => {
    // The database may be dead just now.
    countCycles(sql).then(
      (count) => (cycles = count),
      () => undefined,
    );
  }, WATCH_EVERY_MS);
  const progress = setInterval(
    () => printProgress(startedAt, cycles, load, killer),
    REPORT_EVERY_MS,
  );
  const enough = new AbortController();
  try {
    const killing = killer.run(enough.signal);
    const groups = await makeGroups(load, options.subscriptions, CLOCKS);
    for (const fault of FAULTS) await start.addFault({ ...fault, count: FAULT_COUNT });
    await Promise.all(groups.map((group) => live(load, group, isOver)));
    enough.abort();
    await killing;
    return groups;
  } finally {
    enough.abort();
    clearInterval(watch);
    clearInterval(progress);
  }
}

/** Everybody works again: what was left behind has to come right by itself. */
async function recover(
  { start, sql, load, killer, receiver }: Surroundings,
  groups: readonly Group[],
): Promise<string[]> {
  await killer.waitUntilUp(AbortSignal.timeout(UP_WITHIN_MS));
  await start.clearFaults();
  receiver.recover();
  await Promise.all(groups.map((group) => advance(load, group, 7)));
  const wrong: string[] = [];
  await settle(sql).catch((error: unknown) => wrong.push(messageOf(error)));
  return [...wrong, ...load.client.unanswered];
}

async function judge({ start, receiver, books }: Surroundings): Promise<Verdict[]> {
  const { demo } = start;
  receiver.writeBook(books.receiverBook);
  const opened = await openBooks({
    databaseUrl: demo.databaseUrl,
    gateway: { url: demo.gatewayUrl, key: demo.gatewayKey },
    ...books,
  });
  try {
    return await judgeBooks(opened);
  } finally {
    await opened.close();
  }
}

async function countCycles(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select coalesce(sum(cycles_charged), 0)::int as n from subscription`;
  return row?.n ?? 0;
}

async function figuresOf({ sql, load, receiver }: Surroundings): Promise<[string, string][]> {
  const [row] = await sql<Record<string, number>[]>`
    select count(*)::int as attempts,
      (count(*) filter (where state = 'DECLINED'))::int as declined,
      (count(*) filter (where first_sent_at < last_sent_at))::int as resent,
      (select count(*)::int from outbox_event) as events,
      (select count(*)::int from payment_intent
        where kind = 'one_time' and status = 'SUCCESS') as one_time
    from payment_attempt`;
  const { asked, repeated, unanswered } = load.client;
  const count = (name: string): string => grouped(row?.[name] ?? 0);
  return [
    ['cycles paid', grouped(await countCycles(sql))],
    ['one-time charges paid', count('one_time')],
    ['attempts', count('attempts')],
    ['declined', count('declined')],
    ['sent more than once, under one key', count('resent')],
    ['events', count('events')],
    ['webhooks received', grouped(receiver.received())],
    ['subscriptions', grouped(load.made)],
    ['commands of clients', grouped(load.commands)],
    ['requests, and repeats of them', `${grouped(asked)}, ${grouped(repeated)}`],
    ['without a definite answer', String(unanswered.length)],
    ['pages reloaded', grouped(load.pagesRepeated)],
  ];
}

function printProgress(startedAt: number, cycles: number, load: Load, killer: Killer): void {
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  const counts = KILL_KINDS.map((kind) => `${kind} ${killer.count(kind)}`).join(', ');
  const done = `${grouped(cycles)} cycles paid, ${load.paid} of ${load.made} checkouts`;
  print(
    styled(
      'dim',
      `  ${String(seconds).padStart(5)} s  ${done}, ${load.commands} commands; ${counts}`,
    ),
  );
}

function printReport(report: RunReport): void {
  print();
  for (const [label, text] of report.figures) print(`  ${label.padEnd(36)}${text}`);
  print();
  for (const recovery of report.recovery) print(`  ${recoveryText(recovery)}`);
  print();
  report.verdicts.forEach(printVerdict);
  for (const line of report.wrong.slice(0, 50)) print(styled('red', `  ✗ ${line}`));
  print();
}

function commitOf(): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
