import type postgres from 'postgres';
import type { CheckResult } from '../../../cli/verify/invariants.ts';
import { distributionOf } from '../../bench/measure/percentiles.ts';
import { grouped } from '../../../cli/command-line/terminal.ts';
import { KILL_KINDS } from './killer.ts';
import type { Kill, KillKind } from './killer.ts';

export interface RunReport {
  readonly commit: string;
  readonly command: string;
  readonly startedAt: number;
  readonly seconds: number;
  readonly cyclesPaid: number;
  readonly figures: readonly (readonly [label: string, text: string])[];
  readonly recovery: Awaited<ReturnType<typeof recoveries>>;
  readonly kills: number;
  readonly results: readonly CheckResult[];
  readonly wrong: readonly string[];
}

/** A charge settled within this time, in ms, after a kill may have been sent before the kill. */
const AFTERMATH_MS = 250;

/** First charge settled more than 250 ms after a kill, in epoch ms; null without one. */
export async function chargedAfter(sql: postgres.Sql, killedAt: number): Promise<number | null> {
  const [row] = await sql<{ settled_at: Date | null }[]>`
    select min(settled_at) as settled_at from payment_attempt
    where settled_at > ${new Date(killedAt + AFTERMATH_MS)}`;
  return row?.settled_at?.getTime() ?? null;
}

/** Percentiles of the seconds from a kill to the first charge settled more than 250 ms later. Null without one. */
export async function recoveries(sql: postgres.Sql, kills: readonly Kill[]) {
  const seconds = new Map<KillKind, number[]>();
  for (const { kind, at } of kills) {
    const chargedAt = await chargedAfter(sql, at);
    if (chargedAt === null) continue;
    const list = seconds.get(kind) ?? [];
    list.push((chargedAt - at) / 1_000);
    seconds.set(kind, list);
  }
  return KILL_KINDS.map((kind) => {
    const { p50, p99 } = distributionOf(seconds.get(kind) ?? []);
    return { kind, kills: kills.filter((kill) => kill.kind === kind).length, p50, p99 };
  });
}

export function isRight(report: RunReport): boolean {
  return report.wrong.length === 0 && report.results.every(({ wrong }) => wrong.length === 0);
}

export const LEDGER_HEADER = 'day,commit,cycles,kills,violations,seconds,command\n';

/** The run as a line of a ledger that several evenings continue. */
export function ledgerLine(report: RunReport): string {
  const { commit, cyclesPaid, kills, results, wrong, seconds, command } = report;
  const violations = results.reduce((sum, result) => sum + result.wrong.length, wrong.length);
  const cells = [dayOf(report), commit, cyclesPaid, kills, violations];
  return `${[...cells, seconds.toFixed(0), command].join(',')}\n`;
}

function dayOf({ startedAt }: RunReport): string {
  return new Date(startedAt).toISOString().slice(0, 10);
}

export function toMarkdown(report: RunReport): string {
  const figures = report.figures.map(([label, text]) => `| ${label} | ${text} |`);
  const results = report.results.map(({ invariant, title, counted, wrong }) => {
    const looked = counted === null ? 'not checked' : grouped(counted);
    return `| ${invariant} | ${title} | ${looked} | ${wrong.length} |`;
  });
  const recovery = report.recovery.map(
    ({ kind, kills, p50, p99 }) =>
      `| ${kind} | ${kills} | ${p50?.toFixed(1) ?? '-'} | ${p99?.toFixed(1) ?? '-'} |`,
  );
  const wrong = report.wrong.length === 0 ? ['None.'] : report.wrong.map((line) => `- ${line}`);
  return [
    `# Chaos run, ${dayOf(report)}`,
    `Commit \`${report.commit}\`, command \`${report.command}\`, ${report.seconds.toFixed(0)} s.`,
    ['| | |', '|---|---|', ...figures].join('\n'),
    '## Invariants',
    ['| | Invariant | Checked | Violations |', '|---|---|---|---|', ...results].join('\n'),
    '## Kills, with seconds to the next settled charge',
    ['| Kind | Kills | p50 | p99 |', '|---|---|---|---|', ...recovery].join('\n'),
    '## Other findings',
    wrong.join('\n'),
  ]
    .join('\n\n')
    .concat('\n');
}
