import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

export interface RunConditions {
  readonly date: string;
  readonly commit: string;
  readonly hasChanges: boolean;
  readonly node: string;
  readonly platform: string;
  readonly cores: number;
  readonly processor: string;
  readonly memoryGigabytes: number;
  /** Load average of the minute before the start. Well above 0: other programs were running. */
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
