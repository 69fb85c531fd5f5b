import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { coreTime } from '../../scripts/chaos/machine.ts';
import type { CoreTime } from '../../scripts/chaos/machine.ts';

/** Where and from what a measurement was taken. */
export interface Surroundings {
  /** ISO-8601. */
  readonly date: string;
  readonly commit: string;
  /** True when the checkout had changes that the commit does not have. */
  readonly hasChanges: boolean;
  readonly node: string;
  readonly platform: string;
  readonly cores: number;
  readonly processor: string;
  readonly memoryGigabytes: number;
  /** Load average of the last minute at the start: more than 0 when others use the machine. */
  readonly loadAtStart: number;
}

export function readSurroundings(): Surroundings {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  return {
    date: new Date().toISOString(),
    commit: git('rev-parse', '--short', 'HEAD'),
    hasChanges: git('status', '--porcelain') !== '',
    node: process.versions.node,
    platform: `${process.platform}-${process.arch}`,
    cores: availableParallelism(),
    processor: cpus()[0]?.model.trim() ?? '',
    memoryGigabytes: Math.round(totalmem() / 1e9),
    loadAtStart: loadavg()[0] ?? 0,
  };
}

/** Share of all cores' time that other machines on the same hardware took, in per cent. */
export function stolenPercent(before: CoreTime | null): number | null {
  const now = coreTime();
  if (before === null || now === null) return null;
  return ((now.stolen - before.stolen) / Math.max(1, now.all - before.all)) * 100;
}
