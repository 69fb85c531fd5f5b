import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning, statOf } from '../../embedded/process-identity.ts';
import { openProcessTable } from '../../embedded/process-table.ts';
import type { ProcessRecord, ProcessTable } from '../../embedded/process-table.ts';
import type { Random } from './random.ts';

const PROGRAMS = ['worker', 'api', 'temporal', 'postgres'] as const;
type Program = (typeof PROGRAMS)[number];

/** The processes that each kind of kill hits. `freeze` stops a worker for 10 s and then lets it continue. */
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
  readonly at: number;
}

export interface WatchedSystem {
  isServing(): Promise<boolean>;
  /** True if a charge was settled after `at` (epoch ms). False if the database does not answer. */
  hasChargedSince(at: number): Promise<boolean>;
}

/** Longest wait in ms for a settled charge after a kill. After it the killer assumes that none is due. */
const WORKS_WITHIN_MS = 45_000;
const FROZEN_MS = 10_000;
const POLL_MS = 50;
/** Time in ms between two queries for settled charges, which read all attempts. */
const LOOK_FOR_CHARGES_MS = 500;

export class Killer {
  readonly kills: Kill[] = [];
  private readonly table: ProcessTable;
  private readonly random: Random;
  private readonly system: WatchedSystem;
  private readonly maxPauseMs: number;
  private upcoming: KillKind[] = [];

  /** After each recovery the next kill follows in `maxPauseMs` / 4 to `maxPauseMs`, in which new work starts. */
  constructor(dataDir: string, random: Random, system: WatchedSystem, maxPauseMs: number) {
    this.table = openProcessTable(join(dataDir, 'processes.json'));
    this.random = random;
    this.system = system;
    this.maxPauseMs = maxPauseMs;
    for (const program of PROGRAMS) {
      if (this.find(program) === undefined) throw new Error(`There is no ${program} to kill.`);
    }
  }

  count(kind: KillKind): number {
    return this.kills.filter((kill) => kill.kind === kind).length;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.waitUntilUp(signal);
      await this.waitUntilCharging(signal);
      await pause(this.random.between(this.maxPauseMs / 4, this.maxPauseMs), signal);
      if (!signal.aborted) await this.strike(this.nextKind());
    }
  }

  async waitUntilUp(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const areThere = PROGRAMS.every((program) => this.find(program) !== undefined);
      if (areThere && (await this.system.isServing())) return;
      await pause(POLL_MS, signal);
    }
  }

  /** Waits at most 45 s for a settled charge, which shows that the worker has recovered. */
  private async waitUntilCharging(signal: AbortSignal): Promise<void> {
    const last = this.kills.at(-1)?.at ?? 0;
    const giveUpAt = performance.now() + WORKS_WITHIN_MS;
    while (!signal.aborted && performance.now() < giveUpAt) {
      if (await this.system.hasChargedSince(last)) return;
      await pause(LOOK_FOR_CHARGES_MS, signal);
    }
  }

  /** First half: frozen, so connections are never answered. Second half: killed, so they are refused. No kill. */
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

  /** Returns the kind of the next kill. Every kind occurs once, in random order, before any kind occurs again. */
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
    // If a target is not running at this moment, the kill is skipped.
    if (!targets.every((target) => target !== undefined)) return;
    this.kills.push({ kind, at: Date.now() });
    if (kind !== 'freeze') {
      for (const { pid } of targets) process.kill(pid, 'SIGKILL');
      return;
    }
    for (const { pid } of targets) await freeze(pid, FROZEN_MS);
  }

  /** The program's process, or undefined if it does not run or was not started by this run. */
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

/** True if `starterPid` is the parent and has our working directory. */
function isChildOf(pid: number, starterPid: number): boolean {
  try {
    const parentPid = Number(statOf(pid)?.[1]);
    return parentPid === starterPid && readlinkSync(`/proc/${starterPid}/cwd`) === process.cwd();
  } catch {
    return false;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
