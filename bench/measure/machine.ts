import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';
import { coreTime } from '../../proof/chaos/machine.ts';
import type { CoreTime } from '../../proof/chaos/machine.ts';

/** The machine and the commit of a measurement. */
export interface RunConditions {
  /** ISO-8601. */
  readonly date: string;
  readonly commit: string;
  /** True if the checkout had uncommitted changes. */
  readonly hasChanges: boolean;
  readonly node: string;
  readonly platform: string;
  readonly cores: number;
  readonly processor: string;
  readonly memoryGigabytes: number;
  /** Load average of the last minute at the start. It is above 0 if other programs use the machine. */
  readonly loadAtStart: number;
}

export function readRunConditions(): RunConditions {
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
