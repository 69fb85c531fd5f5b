import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

export interface CoreTime {
  readonly all: number;
  readonly stolen: number;
}

export function coreTime(): CoreTime {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  // user, nice, system, idle, iowait, irq, softirq, steal
  const ticks = line.trim().split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen: ticks[7] ?? 0 };
}

/** Steal time: the share of all cores' time that the hypervisor gave to other machines, in per cent. */
export function stolenPercent(before: CoreTime): number {
  const now = coreTime();
  return ((now.stolen - before.stolen) / Math.max(1, now.all - before.all)) * 100;
}

export function coresSince(before: CoreTime): string {
  return `${availableParallelism()}, with ${stolenPercent(before).toFixed(0)} % steal time`;
}
