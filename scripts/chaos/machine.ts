import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Time of all cores since the machine started, in its ticks, and what other machines took of it. */
export interface CoreTime {
  readonly all: number;
  readonly stolen: number;
}

/** Null where the system does not tell. */
export function coreTime(): CoreTime | null {
  if (process.platform !== 'linux') return null;
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user, nice, system, idle, iowait, irq, softirq, steal
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0 };
}

/** How many cores there were, and how much of them a machine that is shared did not get. */
export function coresSince(before: CoreTime | null): string {
  const cores = String(availableParallelism());
  const now = coreTime();
  if (before === null || now === null) return cores;
  const share = (now.stolen - before.stolen) / Math.max(1, now.all - before.all);
  return `${cores}, ${(share * 100).toFixed(0)} % of their time taken by other machines`;
}
