import { join } from 'node:path';
import type postgres from 'postgres';
import { openProcessTable } from '../../embedded/process-table.ts';
import { grouped } from '../../../cli/command-line/terminal.ts';
import { scrape } from '../../scripts/client/scrape.ts';
import { residentMb } from '../../bench/measure/cpu.ts';
import { distributionOf } from '../../bench/measure/percentiles.ts';
import type { Figure } from './gateway-faults.ts';
import { paceBelow } from './machine.ts';

/**
 * A soak uses a part of the machine, because on a full one waiting work would also grow. `killsUntil` and `steadyFrom`
 * are shares of its time.
 */
export const SOAK = {
  busyPercent: 60,
  /** Longest time between a recovery and the next kill. */
  pauseSeconds: 75,
  killsUntil: 0.5,
  /** A new process fills its caches first, so growth counts from here. */
  steadyFrom: 0.6,
  /** A receiver that fails often holds streams back, so the oldest due delivery would measure the receiver. */
  receiver: { fails: 0.005, drops: 0.005 },
} as const;

const SAMPLE_EVERY_MS = 30_000;
const LAST_MINUTES = 10;
const TABLES_SHOWN = 6;
const PROCESSES = ['worker', 'api', 'gateway', 'temporal'] as const;
type ProcessName = (typeof PROCESSES)[number];

interface Sample {
  readonly minutes: number;
  readonly megabytes: ReadonlyMap<ProcessName, number>;
  /** Of the API and the worker, in ms, since the sample before. */
  readonly eventLoopP99Ms: readonly number[];
  /** Of the deliveries that nothing holds back. Null while the API does not answer. */
  readonly oldestDueSeconds: number | null;
  readonly repairs: number | null;
}

/** Takes a sample every 30 s, and slows the load down. */
export function startSoak(
  dataDir: string,
  metricsPort: number,
  sql: postgres.Sql,
  soakMinutes: number,
) {
  const table = openProcessTable(join(dataDir, 'processes.json'));
  const pace = paceBelow(SOAK.busyPercent);
  const samples: Sample[] = [];
  const startedAt = performance.now();
  const take = async (): Promise<void> => {
    const minutes = (performance.now() - startedAt) / 60_000;
    const running = new Map(table.running().map(({ name, pid }) => [name, pid]));
    const [api, worker, repairs] = await Promise.all([
      scrape(metricsPort).catch(() => undefined),
      scrape(metricsPort + 1).catch(() => undefined),
      countRepairs(sql).catch(() => null),
    ]);
    samples.push({
      minutes,
      megabytes: new Map(
        PROCESSES.flatMap((name) => {
          const megabytes = residentMb(running.get(name));
          return megabytes === null ? [] : [[name, megabytes] as const];
        }),
      ),
      eventLoopP99Ms: [api, worker].flatMap((page) => {
        const seconds = page?.get('nodejs_eventloop_lag_p99_seconds');
        return seconds === undefined ? [] : [seconds * 1_000];
      }),
      oldestDueSeconds: api?.get('perennial_webhook_oldest_due_seconds') ?? null,
      repairs,
    });
  };
  const timer = setInterval(() => void take().catch(() => undefined), SAMPLE_EVERY_MS);
  return {
    turn: pace.turn,
    stop(): void {
      clearInterval(timer);
      pace.end();
    },
    /** Of the steady part, except the repairs. */
    async figures(cycles: number): Promise<Figure[]> {
      const steady = samples.filter(({ minutes }) => minutes >= soakMinutes * SOAK.steadyFrom);
      const repaired: Figure = [
        `repairs a minute in the last ${LAST_MINUTES} minutes`,
        repairsAMinute(samples),
      ];
      return [
        ...figuresOf(steady),
        repaired,
        ['size of tables ÷ paid cycles, bytes', await tablesOf(sql, cycles)],
      ];
    },
  };
}

function figuresOf(samples: readonly Sample[]): Figure[] {
  const memory = PROCESSES.map((name): Figure => {
    const points = samples.flatMap(({ minutes, megabytes }) => {
      const value = megabytes.get(name);
      return value === undefined ? [] : [{ minutes, value }];
    });
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined) return [`memory of ${name}`, 'not measured'];
    const slope = slopeOf(points) * 60;
    const ends = `${first.value.toFixed(0)} to ${last.value.toFixed(0)} MB`;
    return [`memory of ${name}`, `${ends}, ${slope.toFixed(1)} MB an hour`];
  });
  const loop = distributionOf(samples.flatMap(({ eventLoopP99Ms }) => eventLoopP99Ms));
  const due = samples.flatMap(({ oldestDueSeconds }) => oldestDueSeconds ?? []);
  return [
    ...memory,
    ['event loop p99 in 30 s, ms: p50, most', `${text(loop.p50)}, ${text(loop.max)}`],
    ['oldest due delivery, s: most, at the end', `${text(Math.max(...due))}, ${text(due.at(-1))}`],
  ];
}

function repairsAMinute(samples: readonly Sample[]): string {
  const counted = samples.flatMap(({ minutes, repairs }) =>
    repairs === null ? [] : [{ minutes, repairs }],
  );
  const last = counted.at(-1);
  const from = counted.findLast(({ minutes }) => minutes <= (last?.minutes ?? 0) - LAST_MINUTES);
  if (last === undefined || from === undefined) return 'not measured';
  return ((last.repairs - from.repairs) / (last.minutes - from.minutes)).toFixed(2);
}

/** The cases that the sweeps have repaired so far. */
async function countRepairs(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ repaired: number }[]>`
    select coalesce(sum(repaired), 0)::int as repaired from sweep_count where kind <> 'failed'`;
  return row?.repaired ?? 0;
}

function text(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? '-' : value.toFixed(0);
}

/** Least squares, a minute. */
function slopeOf(points: readonly { minutes: number; value: number }[]): number {
  const mean = (of: (point: (typeof points)[number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean(({ minutes }) => minutes), mean(({ value }) => value)];
  const spread = mean(({ minutes }) => (minutes - x) ** 2);
  return spread === 0 ? 0 : mean(({ minutes, value }) => (minutes - x) * (value - y)) / spread;
}

async function tablesOf(sql: postgres.Sql, cycles: number): Promise<string> {
  const rows = await sql<{ name: string; bytes: number }[]>`
    select relname as name, pg_total_relation_size(oid)::float8 as bytes from pg_class
    where relkind = 'r' and relnamespace = 'public'::regnamespace
    order by bytes desc limit ${TABLES_SHOWN}`;
  return rows.map(({ name, bytes }) => `${name} ${grouped(Math.round(bytes / cycles))}`).join(', ');
}
