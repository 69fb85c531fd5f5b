import { cells, print, styled } from '../../../cli/command-line/terminal.ts';
import type { Distribution } from '../measure/percentiles.ts';
import type { RunConditions } from '../measure/machine.ts';
import type { TemporalKind } from '../stack/measured-stack.ts';

const LABEL_WIDTH = 44;
const COLUMN_WIDTH = 11;

/** Formats a value with two decimals below 10, one below 100, else none. `–` without a value. */
export function shown(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function p50p99(distribution: Distribution): string[] {
  const { count, p50, p99, max } = distribution;
  return [String(count), shown(p50), shown(p99), shown(max)];
}

export function printHeading(title: string, columns: readonly string[] = []): void {
  print();
  print(
    `  ${styled('bold', cells(layout(0), [title])[0] ?? '')}${styled('dim', headings(columns))}`,
  );
}

export function printRow(label: string, values: readonly string[]): void {
  print(`  ${cells(layout(values.length), [label, ...values]).join('')}`.trimEnd());
}

export function printNote(text: string): void {
  print(styled('dim', `  ${text}`));
}

/** The title of a benchmark on its own stack, the machine and the commit. */
export function printTitle(
  title: string,
  temporal: TemporalKind,
  runConditions: RunConditions,
): void {
  const server = temporal === 'dev' ? 'dev server with a state file' : 'cluster on Postgres';
  print();
  print(styled('bold', `  ${title}, ${server}`));
  const { cores, processor, memoryGigabytes, node, platform } = runConditions;
  const changed = runConditions.hasChanges ? ' with changes' : '';
  printNote(`${cores} cores (${processor}), ${memoryGigabytes} GB, ${platform}, Node ${node}`);
  printNote(
    `commit ${runConditions.commit}${changed}, ${runConditions.date}, ` +
      `load average at the start ${shown(runConditions.loadAtStart)}`,
  );
}

/** Prints the first 30 problems and the number of the others; without problems, `allRight`. */
export function printProblems(problems: readonly string[], allRight: string): void {
  print();
  for (const line of problems.slice(0, 30)) print(styled('red', `  ✗ ${line}`));
  if (problems.length > 30) print(styled('red', `  … and ${problems.length - 30} more`));
  if (problems.length === 0) print(styled('green', `  ✓ ${allRight}`));
  print();
}

function headings(columns: readonly string[]): string {
  return cells(layout(columns.length).slice(1), columns).join('');
}

function layout(values: number): number[] {
  return [LABEL_WIDTH, ...Array.from({ length: values }, () => -COLUMN_WIDTH)];
}
