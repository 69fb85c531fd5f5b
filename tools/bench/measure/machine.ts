import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os';

export type RunConditions = ReturnType<typeof readRunConditions>;

export function readRunConditions() {
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
    /** Load average of the minute before the start. Well above 0: other programs were running. */
    loadAtStart: loadavg()[0] ?? 0,
  };
}
