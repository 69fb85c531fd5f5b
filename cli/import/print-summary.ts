import { formatAmount } from '../../domain/money.ts';
import { cells, grouped, printable } from '../command-line/terminal.ts';
import type { ReportLine } from './report.ts';
import type { ImportResult } from './run.ts';

/** A line of the file with its problem: `line 7 (old-17): amount: is required`. */
export function problemLine({ line, importId, problem }: ReportLine): string {
  return printable(`line ${line}${importId === null ? '' : ` (${importId})`}: ${problem}`);
}

interface Printed {
  readonly commit: boolean;
  readonly reportFile: string;
  readonly problems: readonly string[];
}

const COLUMNS = [9, -22, -12];

/** The summary of an import as text: problems, results, and the total of the charges of each month. */
export function summaryLines(result: ImportResult, { commit, reportFile, problems }: Printed) {
  const { ok, imported, already_imported: already, problem } = result.lines;
  const hidden = problem - problems.length;
  const done = commit ? `${grouped(imported)} imported` : `${grouped(ok)} can be imported`;
  return [
    ...problems,
    ...(hidden > 0 ? [`… and ${grouped(hidden)} more lines with a problem`] : []),
    `${done}, ${grouped(already)} imported earlier, ${grouped(problem)} with a problem.`,
    ...totalLines(result, commit),
    ...(result.notStarted > 0
      ? [
          `Temporal did not start ${grouped(result.notStarted)} of them. The sweep starts them, ` +
            'once Temporal and a worker run.',
        ]
      : []),
    `Report: ${reportFile}`,
    ...(commit || ok === 0 ? [] : ['Nothing was written. Import with --commit.']),
  ];
}

function totalLines({ totals }: ImportResult, commit: boolean): string[] {
  if (totals.length === 0) return [];
  const row = (...values: string[]) => `  ${cells(COLUMNS, values).join('')}`;
  return [
    `These subscriptions ${commit ? 'will' : 'would'} be charged, if every charge succeeds:`,
    row('month', 'total', 'charges'),
    ...totals.map(({ month, currency, amountMinor, charges }) =>
      row(month, formatAmount(amountMinor, currency), grouped(charges)),
    ),
  ];
}
