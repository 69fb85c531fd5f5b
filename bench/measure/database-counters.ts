import { setTimeout as sleep } from 'node:timers/promises';
import type { MeasuredStack } from '../stack/measured-stack.ts';

/** What Postgres has counted since it started. */
export interface DatabaseCounters {
  /** `performance.now()` of the reading, ms. */
  readonly at: number;
  readonly walBytes: number;
  readonly ours: Counts;
  /** Temporal's databases; null where Temporal keeps its state elsewhere. */
  readonly temporal: Counts | null;
}

interface Counts {
  readonly commits: number;
  /** Without begin, commit and rollback. Null where Postgres does not count statements. */
  readonly statements: number | null;
}

/** Rates or amounts of work, in the same parts. */
export type DatabaseWork = Omit<DatabaseCounters, 'at'>;

/** An idle backend reports its last transactions after 10 s at the latest. */
const REPORTED_AFTER_MS = 10_500;
const OURS = 'perennial';
const TEMPORAL = ['temporal', 'temporal_visibility'];

interface CountRow {
  readonly datname: string;
  readonly commits: number;
  readonly statements: number | null;
}

/** Reads the counters, after a wait for backends that have not reported yet. */
export async function readCounters(stack: MeasuredStack): Promise<DatabaseCounters> {
  // The write-ahead log is counted at once; what sweeps write during the wait is not the wave's.
  const walBytes = await readWal(stack);
  const at = performance.now();
  const statements = await readStatements(stack);
  await sleep(REPORTED_AFTER_MS);
  const rows = await stack.statistics<CountRow[]>`
    select datname, xact_commit::float8 as commits, null::float8 as statements
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
    at,
    walBytes,
    ours: sum([OURS]),
    temporal: stack.temporalKind === 'cluster' ? sum(TEMPORAL) : null,
  };
}

/** Work between two readings, without what an idle system does in that time. */
export function workBetween(
  before: DatabaseCounters,
  after: DatabaseCounters,
  idlePerSecond: DatabaseWork | null,
): DatabaseWork {
  const seconds = (after.at - before.at) / 1_000;
  const difference = (from: number, to: number, idle: number): number =>
    Math.max(0, to - from - idle * seconds);
  const counts = (from: Counts, to: Counts, idle: Counts | null | undefined): Counts => ({
    commits: difference(from.commits, to.commits, idle?.commits ?? 0),
    statements:
      from.statements === null || to.statements === null
        ? null
        : difference(from.statements, to.statements, idle?.statements ?? 0),
  });
  return {
    walBytes: difference(before.walBytes, after.walBytes, idlePerSecond?.walBytes ?? 0),
    ours: counts(before.ours, after.ours, idlePerSecond?.ours),
    temporal:
      before.temporal === null || after.temporal === null
        ? null
        : counts(before.temporal, after.temporal, idlePerSecond?.temporal),
  };
}

/** Every part divided by `by`: by seconds for a rate, by renewals for a cost. */
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
