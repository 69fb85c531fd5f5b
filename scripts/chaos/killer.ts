import { readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from '../../embedded/process-identity.ts';
import { openProcessTable } from '../../embedded/process-table.ts';
import type { ProcessRecord, ProcessTable } from '../../embedded/process-table.ts';
import type { Random } from './random.ts';

const PROGRAMS = ['worker', 'api', 'temporal', 'postgres'] as const;
type Program = (typeof PROGRAMS)[number];

/** What is done to whom. `freeze` stops a worker for ten seconds and lets it go on, none the wiser. */
const KILLS = {
  worker: ['worker'],
  api: ['api'],
  both: ['worker', 'api'],
  temporal: ['temporal'],
  postgres: ['postgres'],
  freeze: ['worker'],
} as const satisfies Record<string, readonly Program[]>;
export type KillKind = keyof typeof KILLS;
export const KILL_KINDS = Object.keys(KILLS) as KillKind[];

export interface Kill {
  readonly kind: KillKind;
  /** Epoch ms. */
  readonly at: number;
}

export interface WatchedSystem {
  /** Whether it answers at all. */
  isServing(): Promise<boolean>;
  /** Whether a charge was settled after that instant, in epoch ms. False while nobody can tell. */
  hasChargedSince(at: number): Promise<boolean>;
}

/** When nothing is charged for so long, there is nothing to charge. */
const WORKS_WITHIN_MS = 45_000;
const FROZEN_MS = 10_000;
const POLL_MS = 50;
/** Each look goes through all attempts. */
const LOOK_FOR_CHARGES_MS = 500;

export class Killer {
  readonly kills: Kill[] = [];
  private readonly table: ProcessTable;
  private readonly random: Random;
  private readonly system: WatchedSystem;
  private readonly mostPauseMs: number;
  private upcoming: KillKind[] = [];

  /**
   * A kill comes a quarter of `mostPauseMs` to all of it after everything works again: time to begin
   * something that it can interrupt.
   */
  constructor(dataDir: string, random: Random, system: WatchedSystem, mostPauseMs: number) {
    this.table = openProcessTable(join(dataDir, 'processes.json'));
    this.random = random;
    this.system = system;
    this.mostPauseMs = mostPauseMs;
    for (const program of PROGRAMS) {
      if (this.find(program) === undefined) throw new Error(`There is no ${program} to kill.`);
    }
  }

  count(kind: KillKind): number {
    return this.kills.filter((kill) => kill.kind === kind).length;
  }

  /** Kills at random moments until `signal` says that it is enough. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.waitUntilUp(signal);
      await this.waitUntilAtWork(signal);
      await pause(this.random.between(this.mostPauseMs / 4, this.mostPauseMs), signal);
      if (!signal.aborted) await this.strike(this.nextKind());
    }
  }

  /** Resolves when everything runs and serves again, or when `signal` says not to wait any longer. */
  async waitUntilUp(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const areThere = PROGRAMS.every((program) => this.find(program) !== undefined);
      if (areThere && (await this.system.isServing())) return;
      await pause(POLL_MS, signal);
    }
  }

  /** Each kill hits a system that works: its worker, too, has recovered from the one before. */
  private async waitUntilAtWork(signal: AbortSignal): Promise<void> {
    const last = this.kills.at(-1)?.at ?? 0;
    const giveUpAt = performance.now() + WORKS_WITHIN_MS;
    while (!signal.aborted && performance.now() < giveUpAt) {
      if (await this.system.hasChargedSince(last)) return;
      await pause(LOOK_FOR_CHARGES_MS, signal);
    }
  }

  /**
   * Keeps a program out of reach for `ms`: for the first half it is frozen, so that it takes
   * connections and never answers; for the second it is killed whenever it is back, so that it
   * refuses them. Counts as no kill.
   */
  async keepAway(program: Program, ms: number): Promise<void> {
    const target = this.find(program);
    if (target === undefined) throw new Error(`There is no ${program} to keep away.`);
    await freeze(target.pid, ms / 2);
    const until = performance.now() + ms / 2;
    while (performance.now() < until) {
      const back = this.find(program);
      if (back !== undefined) process.kill(back.pid, 'SIGKILL');
      await sleep(POLL_MS);
    }
  }

  /** Every kind comes once in each round, in an order of chance. */
  private nextKind(): KillKind {
    if (this.upcoming.length === 0) {
      this.upcoming = KILL_KINDS.map((kind) => ({ kind, at: this.random.next() }))
        .toSorted((a, b) => a.at - b.at)
        .map(({ kind }) => kind);
    }
    return this.upcoming.shift() ?? 'worker';
  }

  private async strike(kind: KillKind): Promise<void> {
    const targets = KILLS[kind].map((program) => this.find(program));
    // One of them died by itself just now: another time.
    if (!targets.every((target) => target !== undefined)) return;
    this.kills.push({ kind, at: Date.now() });
    if (kind !== 'freeze') {
      for (const { pid } of targets) process.kill(pid, 'SIGKILL');
      return;
    }
    for (const { pid } of targets) await freeze(pid, FROZEN_MS);
  }

  /** The process, if it is certainly ours to kill. */
  private find(program: Program): ProcessRecord | undefined {
    const records = this.table.running();
    const starter = records.find(({ name }) => name === 'start');
    const record = records.find(({ name }) => name === program);
    if (record === undefined || starter === undefined) return undefined;
    return isRunning(record) && isChildOf(record.pid, starter.pid) ? record : undefined;
  }
}

async function freeze(pid: number, ms: number): Promise<void> {
  process.kill(pid, 'SIGSTOP');
  try {
    await sleep(ms);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

/** Where /proc tells: a child of the starter. Elsewhere the record says so. */
function isChildOf(pid: number, starterPid: number): boolean {
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const parentPid = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return parentPid === starterPid && readlinkSync(`/proc/${starterPid}/cwd`) === process.cwd();
  } catch {
    return false;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
