import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

export interface CoreTime {
  readonly all: number;
  readonly stolen: number;
}

/** Reads the CPU time. Null on systems other than Linux. */
export function coreTime(): CoreTime | null {
  if (process.platform !== 'linux') return null;
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user, nice, system, idle, iowait, irq, softirq, steal
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0 };
}

/** Text with the number of cores and the share of their time that the hypervisor gave to other machines. */
export function coresSince(before: CoreTime | null): string {
  const cores = String(availableParallelism());
  const now = coreTime();
  if (before === null || now === null) return cores;
  const share = (now.stolen - before.stolen) / Math.max(1, now.all - before.all);
  return `${cores}, with ${(share * 100).toFixed(0)} % steal time`;
}
