import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OrderedFault } from '../client/running-start.ts';
import { grouped, print, styled } from '../client/terminal.ts';
import { countCycles } from './figures.ts';
import { KILL_KINDS } from './killer.ts';
import type { Killer } from './killer.ts';
import { live, makeGroups } from './load.ts';
import type { Group } from './load.ts';
import { sitOut } from './outage.ts';
import type { Outage } from './outage.ts';
import type { Surroundings } from './surroundings.ts';

/**
 * Each goes on by itself, so that something falls due at every moment. A clock waits for the slowest of
 * its subscriptions, so that few share one.
 */
const CLOCKS = 30;
const REPORT_EVERY_MS = 15_000;
const WATCH_EVERY_MS = 1_000;
/** How long everything may take to run and serve again. */
export const UP_WITHIN_MS = 120_000;
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

/** What is left when the fire is out. */
export interface AfterFire {
  readonly groups: readonly Group[];
  readonly faults: readonly OrderedFault[];
  readonly outage: Outage | null;
}

/** Until enough cycles are paid: load, faults and kills at once. */
export async function underFire(surroundings: Surroundings): Promise<AfterFire> {
  const { options, start, load, killer } = surroundings;
  const progress = new Progress(surroundings);
  const enough = new AbortController();
  // Everybody who lives by it listens.
  setMaxListeners(0, enough.signal);
  try {
    const groups = await makeGroups(load, options.subscriptions, CLOCKS);
    const living = Promise.all(groups.map((group) => live(load, group, enough.signal)));
    // Waited for below; until then a failure of it is nobody's.
    living.catch(() => undefined);
    const paid = (share: number) =>
      Promise.race([progress.reaches(share), living.then(endedEarly)]);

    const outage = await sitOutage(surroundings, paid, living);
    // Not before the outage: its backlog is to tell of Temporal, not of payments that are looked up.
    for (const fault of FAULTS) await start.addFault({ ...fault, count: FAULT_COUNT });
    await whileKilling(killer, () => paid(1));
    // What is under way ends in peace: it would keep the fire burning for minutes.
    enough.abort();
    const faults = await start.faults();
    await start.clearFaults();
    await living;
    return { groups, outage, faults };
  } finally {
    progress.end();
  }
}

/** Lets Temporal be away in the middle of the run, where that was asked for. */
async function sitOutage(
  { options, start, sql, load, killer }: Surroundings,
  paid: (share: number) => Promise<void>,
  living: Promise<unknown>,
): Promise<Outage | null> {
  if (options.temporalAway === undefined) return null;
  await whileKilling(killer, () => paid(OUTAGE_AT));
  await killer.waitUntilUp(AbortSignal.timeout(UP_WITHIN_MS));
  print(styled('bold', `  Temporal is out of reach for ${options.temporalAway} s`));
  const { temporalAddress } = start.demo;
  const world = { killer, load, temporalAddress, cycles: () => countCycles(sql) };
  const outage = await Promise.race([sitOut(options.temporalAway, world), living.then(endedEarly)]);
  print(styled('bold', `  its backlog took ${outage.drainSeconds.toFixed(1)} s`));
  return outage;
}

/** Kills from the beginning of `step` to its end. What it began, a freeze, is over then. */
async function whileKilling(killer: Killer, step: () => Promise<void>): Promise<void> {
  const enough = new AbortController();
  await Promise.all([step().finally(() => enough.abort()), killer.run(enough.signal)]);
}

function endedEarly(): never {
  throw new Error('The load ended before its time.');
}

/** Counts what is paid and tells of it on the terminal, until its end. */
class Progress {
  private readonly surroundings: Surroundings;
  private readonly timers: readonly NodeJS.Timeout[];
  private cycles = 0;
  private isEnded = false;

  constructor(surroundings: Surroundings) {
    this.surroundings = surroundings;
    this.timers = [
      setInterval(() => this.look(), WATCH_EVERY_MS),
      setInterval(() => this.tell(), REPORT_EVERY_MS),
    ];
  }

  /** Resolves when this share of the cycles is paid, or the time of the whole run is over. */
  async reaches(share: number): Promise<void> {
    const { options, startedAt } = this.surroundings;
    const endsAt = startedAt + options.minutes * 60_000;
    const isReached = () => this.cycles >= options.cycles * share || Date.now() >= endsAt;
    while (!this.isEnded && !isReached()) await sleep(WATCH_EVERY_MS);
  }

  end(): void {
    this.isEnded = true;
    for (const timer of this.timers) clearInterval(timer);
  }

  private look(): void {
    countCycles(this.surroundings.sql).then(
      (count) => (this.cycles = count),
      // The database may be dead just now.
      () => undefined,
    );
  }

  private tell(): void {
    const { startedAt, load, killer } = this.surroundings;
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    const counts = KILL_KINDS.map((kind) => `${kind} ${killer.count(kind)}`).join(', ');
    const done = `${grouped(this.cycles)} cycles paid, ${load.paid} of ${load.made} checkouts`;
    const text = `${String(seconds).padStart(5)} s  ${done}, ${load.commands} commands; ${counts}`;
    print(styled('dim', `  ${text}`));
  }
}
