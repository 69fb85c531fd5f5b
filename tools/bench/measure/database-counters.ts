import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredStack } from '../stack/measured-stack.ts';

export interface DatabaseCounters {
  /** `performance.now()` in ms when statements and commits were read. */
  readonly at: { readonly statements: number; readonly commits: number };
  readonly walBytes: number;
  readonly ours: Counts;
  readonly temporal: Counts | null;
}

interface Counts {
  readonly commits: number;
  /** Without transaction control (begin, commit, savepoint, …). Null if Postgres does not count statements. */
  readonly statements: number | null;
}

/** The work between two readings, or a rate of work, with the same fields. */
export type DatabaseWork = Omit<DatabaseCounters, 'at'>;

/** Time in ms until an idle Postgres backend has reported its last transactions: 10 s and a margin. */
const REPORTED_AFTER_MS = 10_500;
const OURS = 'perennial';
const TEMPORAL = ['temporal', 'temporal_visibility'];

/** Postgres counts commits only when its backends report them: `afterReports` waits 10.5 s before it reads them. */
export async function readCounters(
  stack: MeasuredStack,
  reports: 'now' | 'afterReports',
): Promise<DatabaseCounters> {
  const walBytes = await readWal(stack);
  const statementsAt = performance.now();
  const statements = await readStatements(stack);
  if (reports === 'afterReports') await sleep(REPORTED_AFTER_MS);
  const commitsAt = performance.now();
  const rows = await stack.statistics<{ datname: string; commits: number }[]>`
    select datname, xact_commit::float8 as commits
    from pg_stat_database where datname is not null`;
  const sum = (names: readonly string[]): Counts => ({
    commits: rows
      .filter(({ datname }) => names.includes(datname))
      .reduce((total, { commits }) => total + commits, 0),
    statements:
      statements === null
        ? null
        : names.reduce((total, name) => total + (statements.get(name) ?? 0), 0),
  });
  return {
    at: { statements: statementsAt, commits: commitsAt },
    walBytes,
    ours: sum([OURS]),
    temporal: stack.temporalKind === 'cluster' ? sum(TEMPORAL) : null,
  };
}

/** The idle system's share is subtracted from commits and statements; its WAL varies too much. */
export function workBetween(
  before: DatabaseCounters,
  after: DatabaseCounters,
  idlePerSecond: DatabaseWork | null,
): DatabaseWork {
  const secondsOf = (part: 'statements' | 'commits'): number =>
    (after.at[part] - before.at[part]) / 1_000;
  const counts = (from: Counts, to: Counts, idle: Counts | null | undefined): Counts => ({
    commits: Math.max(0, to.commits - from.commits - (idle?.commits ?? 0) * secondsOf('commits')),
    statements:
      from.statements === null || to.statements === null
        ? null
        : Math.max(
            0,
            to.statements - from.statements - (idle?.statements ?? 0) * secondsOf('statements'),
          ),
  });
  return {
    walBytes: after.walBytes - before.walBytes,
    ours: counts(before.ours, after.ours, idlePerSecond?.ours),
    temporal:
      before.temporal === null || after.temporal === null
        ? null
        : counts(before.temporal, after.temporal, idlePerSecond?.temporal),
  };
}

export function divided(work: DatabaseWork, by: number): DatabaseWork {
  const counts = ({ commits, statements }: Counts): Counts => ({
    commits: commits / by,
    statements: statements === null ? null : statements / by,
  });
  return {
    walBytes: work.walBytes / by,
    ours: counts(work.ours),
    temporal: work.temporal === null ? null : counts(work.temporal),
  };
}

async function readWal({ statistics }: MeasuredStack): Promise<number> {
  const [row] = await statistics<{ bytes: number }[]>`
    select (pg_current_wal_lsn() - '0/0')::float8 as bytes`;
  return row?.bytes ?? 0;
}

async function readStatements(stack: MeasuredStack): Promise<Map<string, number> | null> {
  if (!stack.countsStatements) return null;
  const rows = await stack.statistics<{ datname: string; statements: number }[]>`
    select d.datname, sum(s.calls)::float8 as statements
    from pg_stat_statements s join pg_database d on d.oid = s.dbid
    where s.query !~* '^\\s*(begin|start transaction|commit|rollback|savepoint|release)'
    group by d.datname`;
  return new Map(rows.map(({ datname, statements }) => [datname, statements]));
}
