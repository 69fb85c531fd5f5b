import { readdirSync, readFileSync } from 'node:fs';
import { statOf } from '../../embedded/process-identity.ts';

export type CpuTimes<Name extends string = string> = ReadonlyMap<Name, number>;

/** Clock ticks a second in /proc/<pid>/stat. Linux fixes this number for user programs (USER_HZ). */
const TICKS_PER_SECOND = 100;

/** CPU time with all descendants. Linux adds an ended child's time to its parent. */
export function readCpu<Name extends string>(roots: ReadonlyMap<Name, number>): CpuTimes<Name> {
  const processes = readProcesses();
  const children = new Map<number, number[]>();
  for (const [pid, { parent }] of processes) {
    children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const ticksOf = (pid: number): number => {
    const own = processes.get(pid)?.ticks ?? 0;
    return (children.get(pid) ?? []).reduce((sum, child) => sum + ticksOf(child), own);
  };
  return new Map(
    [...roots].map(([name, pid]) => [name, (ticksOf(pid) * 1_000) / TICKS_PER_SECOND]),
  );
}

/** CPU time in ms of each process between two readings. NaN for a process that ended in between. */
export function cpuBetween<Name extends string>(
  before: CpuTimes<Name>,
  after: CpuTimes<Name>,
): Record<Name, number> {
  return Object.fromEntries(
    [...after].map(([name, ms]) => {
      const used = ms - (before.get(name) ?? 0);
      return [name, used < 0 ? Number.NaN : used];
    }),
  ) as Record<Name, number>;
}

/** The returned function gives the CPU ms since this call, divided by `count`. */
export function countCpu<Name extends string>(
  roots: ReadonlyMap<Name, number>,
): (count: number) => Record<Name | 'bench', number> {
  const before = readCpu(roots);
  const ownBefore = process.cpuUsage();
  return (count) => {
    const used = cpuBetween(before, readCpu(roots));
    const { user, system } = process.cpuUsage(ownBefore);
    const all = { ...used, bench: (user + system) / 1_000 };
    return Object.fromEntries(
      Object.entries<number>(all).map(([name, ms]) => [name, ms / count]),
    ) as Record<Name | 'bench', number>;
  };
}

/** Resident memory of one process in MB, without its children. Null without the process. */
export function residentMb(pid: number | undefined): number | null {
  if (pid === undefined) return null;
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return kilobytes === undefined ? null : Number(kilobytes) / 1_024;
}

function readProcesses(): Map<number, { parent: number; ticks: number }> {
  return new Map(
    readdirSync('/proc').flatMap((entry) => {
      const pid = Number(entry);
      const stat = Number.isInteger(pid) ? statOf(pid) : undefined;
      if (stat === undefined) return [];
      // utime, stime, cutime and cstime.
      const ticks = stat.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
      return [[pid, { parent: Number(stat[1]), ticks }] as const];
    }),
  );
}
