import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { isHealthy } from '../client/running-start.ts';
import type { OrderedFault, RunningStart } from '../client/running-start.ts';
import { grouped, print, styled } from '../client/terminal.ts';
import { openBooks } from '../verify/books.ts';
import { judgeBooks } from '../verify/invariants.ts';
import type { Verdict } from '../verify/invariants.ts';
import { countCycles, faultFigures, figuresOf, repairsOf } from './figures.ts';
import { InsistentClient } from './insistent-client.ts';
import { KILL_KINDS, Killer } from './killer.ts';
import { advance, live, makeGroups } from './load.ts';
import type { Group, Load } from './load.ts';
import { coresSince, coreTime } from './machine.ts';
import { sitOut } from './outage.ts';
import type { Outage } from './outage.ts';
import { Random } from './random.ts';
import { chargedAfter, recoveries } from './report.ts';
import type { RunReport } from './report.ts';
import { settle } from './settle.ts';
import { startUnreliableReceiver } from './unreliable-receiver.ts';

export interface RunOptions {
  readonly cycles: number;
  readonly subscriptions: number;
  readonly seed: number;
  readonly minutes: number;
  /** The longest time in seconds that everything works before something is killed. */
  readonly pause: number;
  /** Seconds that Temporal is out of reach in the middle of the run. */
  readonly temporalAway?: number;
}

/**
 * Each goes on by itself, so that something falls due at every moment. A clock waits for the slowest of
 * its subscriptions, so that few share one.
 */
const CLOCKS = 30;
const REPORT_EVERY_MS = 15_000;
const WATCH_EVERY_MS = 1_000;
const UP_WITHIN_MS = 120_000;
/** Share of the cycles that are paid before Temporal goes away. */
const OUTAGE_AT = 0.25;

/**
 * What the gateway does to charges once the first subscriptions are there, as shares of all charges:
 * a fault has its chance among those that no fault before it hit.
 */
const FAULTS = [
  { operation: 'charge', fault: 'lose_answer', chance: 0.15 },
  { operation: 'charge', fault: 'lose_answer', effect: 'none', chance: 0.03 / 0.85 },
  // Past the client's own limit of 5 s.
  { operation: 'charge', fault: 'delay', chance: 0.05 / 0.82, delayMs: 6_000 },
  { operation: 'charge', fault: 'decline', chance: 0.15 / 0.77 },
  { operation: 'lookup', fault: 'error_500', chance: 0.05 },
  { operation: 'refund', fault: 'lose_answer', chance: 0.15 },
] as const;
const FAULT_COUNT = 1_000_000;

/** What a run is made of, from the first subscription to the last book. */
interface Surroundings {
  readonly options: RunOptions;
  readonly startedAt: number;
  readonly start: RunningStart;
  readonly sql: postgres.Sql;
  readonly load: Load;
  readonly killer: Killer;
  readonly receiver: Awaited<ReturnType<typeof startUnreliableReceiver>>;
  readonly books: { readonly clientBook: string; readonly receiverBook: string };
}

interface UnderFire {
  readonly groups: readonly Group[];
  readonly faults: readonly OrderedFault[];
  readonly outage: Outage | null;
}

/** One run on a system of its own, whose data is in `folder`: fire, recovery and judgement. */
export async function run(
  start: RunningStart,
  options: RunOptions,
  folder: string,
): Promise<RunReport> {
  const { demo } = start;
  const sql = postgres(demo.databaseUrl, { max: 2, onnotice: () => undefined });
  const books = {
    clientBook: join(folder, 'answers.jsonl'),
    receiverBook: join(folder, 'webhooks.jsonl'),
  };
  writeFileSync(books.clientBook, '');
  const surroundings: Surroundings = {
    options,
    startedAt: Date.now(),
    start,
    sql,
    load: {
      client: new InsistentClient({ ...demo, bookFile: books.clientBook }),
      random: new Random(options.seed),
      made: 0,
      paid: 0,
      tooLate: 0,
      pagesRepeated: 0,
      commands: 0,
    },
    killer: new Killer(
      start.dataDir,
      new Random(options.seed + 1),
      {
        isServing: () => isHealthy(demo.apiUrl),
        hasChargedSince: (at) =>
          chargedAfter(sql, at).then(
            (chargedAt) => chargedAt !== null,
            // The database may be dead just now.
            () => false,
          ),
      },
      options.pause * 1_000,
    ),
    receiver: await startUnreliableReceiver(start.merchant(), new Random(options.seed + 2)),
    books,
  };
  try {
    return await reportOf(surroundings);
  } finally {
    await surroundings.receiver.close();
    await sql.end({ timeout: 5 });
  }
}

async function reportOf(surroundings: Surroundings): Promise<RunReport> {
  const { options, startedAt, sql, load, killer, receiver } = surroundings;
  const coresBefore = coreTime();
  const { groups, faults, outage } = await underFire(surroundings);
  const secondsUnderFire = (Date.now() - startedAt) / 1_000;
  const cores = coresSince(coresBefore);
  const { wrong, repairs } = await recover(surroundings, groups);
  const verdicts = await judge(surroundings);
  return {
    commit: commitOf(),
    command: commandOf(options),
    startedAt,
    seconds: (Date.now() - startedAt) / 1_000,
    figures: [
      ...(await figuresOf(sql, load, receiver.received(), repairs)),
      ...faultFigures(faults),
      ['under fire', `${secondsUnderFire.toFixed(0)} s`],
      ['cores', cores],
    ],
    outage,
    recovery: await recoveries(sql, killer.kills),
    verdicts,
    wrong,
  };
}

/** Until enough cycles are paid: load, faults and kills at once. */
async function underFire(surroundings: Surroundings): Promise<UnderFire> {
  const { options, startedAt, start, sql, load, killer } = surroundings;
  let cycles = 0;
  const isTimeUp = (): boolean => Date.now() - startedAt > options.minutes * 60_000;
  const isPaid = (share: number): boolean => cycles >= options.cycles * share || isTimeUp();
  const watch = setInterval(() => {
    // The database may be dead just now.
    countCycles(sql).then(
      (count) => (cycles = count),
      () => undefined,
    );
  }, WATCH_EVERY_MS);
  const progress = setInterval(() => printProgress(surroundings, cycles), REPORT_EVERY_MS);
  let killing: ReturnType<typeof startKilling> | null = null;
  let isOutageOver = options.temporalAway === undefined;
  try {
    const groups = await makeGroups(load, options.subscriptions, CLOCKS);
    killing = startKilling(killer);
    const living = Promise.all(
      groups.map((group) => live(load, group, () => isOutageOver && isPaid(1))),
    );
    // Waited for below; until then a failure of it is nobody's.
    living.catch(() => undefined);
    let outage: Outage | null = null;
    if (options.temporalAway !== undefined) {
      while (!isPaid(OUTAGE_AT)) await sleep(WATCH_EVERY_MS);
      await killing.stop();
      await killer.waitUntilUp(AbortSignal.timeout(UP_WITHIN_MS));
      print(styled('bold', `  Temporal is out of reach for ${options.temporalAway} s`));
      const { temporalAddress } = start.demo;
      const world = { killer, load, temporalAddress, cycles: () => countCycles(sql) };
      outage = await Promise.race([sitOut(options.temporalAway, world), living.then(endedEarly)]);
      print(styled('bold', `  its backlog took ${outage.drainSeconds.toFixed(1)} s`));
      isOutageOver = true;
      killing = startKilling(killer);
    }
    // Not before the outage: its backlog is to tell of Temporal, not of payments that are looked up.
    for (const fault of FAULTS) await start.addFault({ ...fault, count: FAULT_COUNT });
    while (!isPaid(1)) await Promise.race([sleep(WATCH_EVERY_MS), living]);
    // What is under way ends in peace: it would keep the fire burning for minutes.
    await killing.stop();
    const faults = await start.faults();
    await start.clearFaults();
    await living;
    return { groups, outage, faults };
  } finally {
    await killing?.stop();
    clearInterval(watch);
    clearInterval(progress);
  }
}

function startKilling(killer: Killer): { stop(): Promise<void> } {
  const enough = new AbortController();
  const killing = killer.run(enough.signal);
  return {
    stop: async () => {
      enough.abort();
      await killing;
    },
  };
}

function endedEarly(): never {
  throw new Error('The load ended before the outage did.');
}

/** Everybody works again: what was left behind has to come right by itself. */
async function recover(
  { sql, load, killer, receiver }: Surroundings,
  groups: readonly Group[],
): Promise<{ wrong: string[]; repairs: string }> {
  await killer.waitUntilUp(AbortSignal.timeout(UP_WITHIN_MS));
  receiver.recover();
  await Promise.all(groups.map((group) => advance(load, group, 7)));
  // Deliveries whose waits are cut short after this are found by a sweep, too.
  const repairs = await repairsOf(sql);
  const wrong: string[] = [];
  await settle(sql).catch((error: unknown) => wrong.push(messageOf(error)));
  return { wrong: [...wrong, ...load.client.unanswered], repairs };
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

function printProgress({ startedAt, load, killer }: Surroundings, cycles: number): void {
  const seconds = Math.round((Date.now() - startedAt) / 1_000);
  const counts = KILL_KINDS.map((kind) => `${kind} ${killer.count(kind)}`).join(', ');
  const done = `${grouped(cycles)} cycles paid, ${load.paid} of ${load.made} checkouts`;
  const text = `${String(seconds).padStart(5)} s  ${done}, ${load.commands} commands; ${counts}`;
  print(styled('dim', `  ${text}`));
}

function commandOf({ cycles, subscriptions, seed, pause, temporalAway }: RunOptions): string {
  const away = temporalAway === undefined ? '' : ` --temporal-away ${temporalAway}`;
  const size = `--cycles ${cycles} --subscriptions ${subscriptions}`;
  return `npm run chaos -- ${size} --seed ${seed} --pause ${pause}${away}`;
}

function commitOf(): string {
  return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
