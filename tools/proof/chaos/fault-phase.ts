import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { grouped, print, styled } from '../../../cli/command-line/terminal.ts';
import { areClocksAhead, countCycles } from './figures.ts';
import { KILL_KINDS } from './killer.ts';
import type { Killer } from './killer.ts';
import { applyLoad, makeGroups } from './load.ts';
import { measureOutage } from './outage.ts';
import type { Figure } from './gateway-faults.ts';
import { SOAK } from './soak.ts';
import { keepRefunding } from './refunds.ts';
import type { Surroundings } from './surroundings.ts';

/** They advance independently. An advance waits for its slowest subscription, so few share a clock. */
const CLOCKS = 30;
const REPORT_EVERY_MS = 15_000;
const WATCH_EVERY_MS = 1_000;
/** Time limit in ms until all processes run and answer again after a kill. */
export const UP_WITHIN_MS = 120_000;
/** Temporal becomes unreachable when this share of the requested cycles is paid. */
const OUTAGE_AT = 0.25;

export async function runFaultPhase(surroundings: Surroundings) {
  const { sql, load, killer, gatewayFaults, paidCycles, soak } = surroundings;
  const progress = new Progress(surroundings);
  const enough = new AbortController();
  // 0 means no limit. Each group adds a listener, and Node warns if there are more than ten.
  setMaxListeners(0, enough.signal);
  try {
    const groups = await makeGroups(load, surroundings.options.subscriptions, CLOCKS);
    const loads = Promise.all([
      ...groups.map((group) => applyLoad(load, group, enough.signal)),
      keepRefunding(load, paidCycles, enough.signal),
    ]);
    // `loads` is awaited below. Until then this handler prevents an unhandled rejection.
    loads.catch(() => undefined);
    const paid = (share: number) => Promise.race([progress.reaches(share), loads.then(endedEarly)]);

    const outage = await runOutage(surroundings, paid, loads);
    // Faults start after the outage. Otherwise look-ups of payments would lengthen the measured backlog.
    await gatewayFaults.begin();
    await whileKilling(killer, () => paid(soak ? SOAK.killsUntil : 1));
    await paid(1);
    const soaked = (await soak?.figures(await countCycles(sql))) ?? [];
    // The faults end before the load, because faults make work in progress take minutes longer.
    enough.abort();
    soak?.stop();
    const faults = await gatewayFaults.end();
    await loads;
    return { groups, outage, faults, soaked };
  } finally {
    progress.end();
  }
}

/** Nothing without `temporalAway`. */
async function runOutage(
  { options, start, sql, load, killer }: Surroundings,
  paid: (share: number) => Promise<void>,
  loads: Promise<unknown>,
): Promise<Figure[]> {
  if (options.temporalAway === undefined) return [];
  await whileKilling(killer, () => paid(OUTAGE_AT));
  await killer.waitUntilUp(AbortSignal.timeout(UP_WITHIN_MS));
  print(styled('bold', `  Temporal is unreachable for ${options.temporalAway} s`));
  const { temporalAddress } = start.demo;
  const system = { killer, load, temporalAddress, cycles: () => countCycles(sql) };
  const outage = await Promise.race([
    measureOutage(options.temporalAway, system),
    loads.then(endedEarly),
  ]);
  for (const [label, text] of outage) print(styled('bold', `  ${label}: ${text}`));
  return outage;
}

/** Kills processes at random while `step` runs. A freeze in progress ends before the function returns. */
async function whileKilling(killer: Killer, step: () => Promise<void>): Promise<void> {
  const enough = new AbortController();
  await Promise.all([step().finally(() => enough.abort()), killer.run(enough.signal)]);
}

function endedEarly(): never {
  throw new Error('The load ended before the end of the fault phase.');
}

class Progress {
  private readonly surroundings: Surroundings;
  private readonly timers: readonly NodeJS.Timeout[];
  private cycles = 0;
  private isEnded = false;

  constructor(surroundings: Surroundings) {
    this.surroundings = surroundings;
    this.timers = [
      setInterval(() => this.look(), WATCH_EVERY_MS),
      setInterval(() => this.report(), REPORT_EVERY_MS),
    ];
  }

  /** Resolves when this share of the cycles is paid, or of the soak's time is over, or at the time limit. */
  async reaches(share: number): Promise<void> {
    const { options, startedAt } = this.surroundings;
    const endsAt =
      startedAt + (options.soak === undefined ? options.minutes : options.soak * share) * 60_000;
    const isReached = () =>
      Date.now() >= endsAt || (options.soak === undefined && this.cycles >= options.cycles * share);
    while (!this.isEnded && !isReached()) await sleep(WATCH_EVERY_MS);
  }

  end(): void {
    this.isEnded = true;
    for (const timer of this.timers) clearInterval(timer);
  }

  private look(): void {
    const { sql, load, soak } = this.surroundings;
    // The database may be down at this moment.
    const ignored = () => undefined;
    countCycles(sql).then((count) => (this.cycles = count), ignored);
    // In a soak, the machine's idle time decides when clocks advance.
    if (soak) return;
    areClocksAhead(sql).then((isAhead) => (load.areClocksAhead = isAhead), ignored);
  }

  private report(): void {
    const { startedAt, load, killer } = this.surroundings;
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    const counts = KILL_KINDS.map((kind) => `${kind} ${killer.count(kind)}`).join(', ');
    const done = `${grouped(this.cycles)} cycles paid, ${load.paid} of ${load.made} checkouts`;
    const text = `${String(seconds).padStart(5)} s  ${done}, ${load.commands} commands; ${counts}`;
    print(styled('dim', `  ${text}`));
  }
}
