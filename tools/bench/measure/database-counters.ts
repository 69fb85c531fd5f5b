import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredStack } from '../stack/measured-stack.ts';

export type DatabaseCounters = Awaited<ReturnType<typeof readCounters>>;

/** The work between two readings, or a rate of work. */
export interface DatabaseWork {
  readonly walBytes: number;
  readonly commits: number;
  /** Null without a cluster on Postgres. */
  readonly temporalCommits: number | null;
}

/** Time in ms until an idle Postgres backend has reported its last transactions: 10 s and a margin. */
const REPORTED_AFTER_MS = 10_500;
const OURS = ['perennial'];
const TEMPORAL = ['temporal', 'temporal_visibility'];

/** Postgres counts commits only when its backends report them: `afterReports` waits 10.5 s before it reads them. */
export async function readCounters(
  { statistics, temporalKind }: MeasuredStack,
  reports: 'now' | 'afterReports',
) {
  const [wal] = await statistics<{ bytes: number }[]>`
    select (pg_current_wal_lsn() - '0/0')::float8 as bytes`;
  if (reports === 'afterReports') await sleep(REPORTED_AFTER_MS);
  const at = performance.now();
  const rows = await statistics<{ datname: string; commits: number }[]>`
    select datname, xact_commit::float8 as commits
    from pg_stat_database where datname is not null`;
  const commitsOf = (names: readonly string[]): number =>
    rows
      .filter(({ datname }) => names.includes(datname))
      .reduce((total, { commits }) => total + commits, 0);
  return {
    /** `performance.now()` in ms when the commits were read. */
    at,
    walBytes: wal?.bytes ?? 0,
    commits: commitsOf(OURS),
    temporalCommits: temporalKind === 'cluster' ? commitsOf(TEMPORAL) : null,
  };
}

/** The idle system's share is subtracted from commits; its WAL varies too much. */
export function workBetween(
  before: DatabaseCounters,
  after: DatabaseCounters,
  idlePerSecond: DatabaseWork | null,
): DatabaseWork {
  const seconds = (after.at - before.at) / 1_000;
  const difference = (from: number, to: number, idle = 0): number =>
    Math.max(0, to - from - idle * seconds);
  const { temporalCommits: from } = before;
  const { temporalCommits: to } = after;
  const idleTemporal = idlePerSecond?.temporalCommits ?? 0;
  return {
    walBytes: after.walBytes - before.walBytes,
    commits: difference(before.commits, after.commits, idlePerSecond?.commits),
    temporalCommits: from === null || to === null ? null : difference(from, to, idleTemporal),
  };
}

export function divided(work: DatabaseWork, by: number): DatabaseWork {
  const { walBytes, commits, temporalCommits } = work;
  return {
    walBytes: walBytes / by,
    commits: commits / by,
    temporalCommits: temporalCommits === null ? null : temporalCommits / by,
  };
}
