import { readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isRunning } from '../../embedded/process-identity.ts';
import { openProcessTable } from '../../embedded/process-table.ts';
import type { ProcessRecord, ProcessTable } from '../../embedded/process-table.ts';
import type { Random } from './random.ts';

export const KILLS = ['worker', 'api', 'both'] as const;
export type KillKind = (typeof KILLS)[number];

const PROGRAMS = { worker: 'worker.ts', api: 'api/main.ts' } as const;
type Program = keyof typeof PROGRAMS;

/** Before the next kill, from when both run again: time to begin something that it can interrupt. */
const LEAST_PAUSE_MS = 5_000;
const MOST_PAUSE_MS = 20_000;
const POLL_MS = 100;

export class Killer {
  readonly counts: Record<KillKind, number> = { worker: 0, api: 0, both: 0 };
  private readonly table: ProcessTable;
  private readonly random: Random;
  private readonly upcoming: KillKind[];

  constructor(dataDir: string, random: Random) {
    this.table = openProcessTable(join(dataDir, 'processes.json'));
    this.random = random;
    // Each kind comes once before chance takes over.
    this.upcoming = KILLS.map((kind) => ({ kind, at: random.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ kind }) => kind);
    for (const program of ['worker', 'api'] as const) {
      if (this.find(program) === undefined) {
        throw new Error(`The running npm start names no ${program} of this checkout.`);
      }
    }
  }

  /** Kills at random moments until `signal` says that it is enough. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.waitUntilUp(signal);
      await pause(this.random.between(LEAST_PAUSE_MS, MOST_PAUSE_MS), signal);
      if (!signal.aborted) this.kill(this.upcoming.shift() ?? this.random.pick(KILLS));
    }
  }

  /** Resolves when both run again, or when `signal` says not to wait any longer. */
  async waitUntilUp(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && !(this.find('worker') && this.find('api'))) {
      await pause(POLL_MS, signal);
    }
  }

  private kill(kind: KillKind): void {
    const programs: Program[] = kind === 'both' ? ['worker', 'api'] : [kind];
    const targets = programs.map((program) => this.find(program));
    // One of them died by itself just now: another time.
    if (!targets.every((target) => target !== undefined)) return;
    for (const { pid } of targets) process.kill(pid, 'SIGKILL');
    this.counts[kind] += 1;
  }

  /** The process, if it is certainly ours to kill. */
  private find(program: Program): ProcessRecord | undefined {
    const records = this.table.running();
    const starter = records.find(({ name }) => name === 'start');
    const record = records.find(({ name }) => name === program);
    if (record === undefined || starter === undefined) return undefined;
    const isOurs =
      record.command.endsWith(PROGRAMS[program]) &&
      isChildHere(record.pid, starter.pid) &&
      isRunning(record);
    return isOurs ? record : undefined;
  }
}

/** Where /proc tells: a child of the starter, at work in this checkout. Elsewhere the record says so. */
function isChildHere(pid: number, starterPid: number): boolean {
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const parentPid = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    return parentPid === starterPid && readlinkSync(`/proc/${pid}/cwd`) === process.cwd();
  } catch {
    return false;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
