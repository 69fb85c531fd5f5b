import { grouped, print, printable, styled } from '../command-line/terminal.ts';
import { acceptanceText } from './acceptance.ts';
import type { CheckResult } from './invariants.ts';

/** Maximum number of printed lines of one kind. */
const LINES_MAX = 20;

/** Prints one invariant: the number of checked records, the unchecked parts, the violations, those that were accepted, and the open reviews. */
export function printResult(result: CheckResult): void {
  const { invariant, title, counted, unchecked, wrong, accepted, forPerson } = result;
  const looked = counted === null ? 'not checked' : `${grouped(counted)} checked`;
  print(`  ${markOf(result)} ${invariant}. ${title} ${styled('dim', `(${looked})`)}`);
  for (const { reason } of unchecked)
    print(`     ${styled('dim', '·')} not checked: ${printable(reason)}`);
  printLines('      ', wrong);
  printLines(`     ${styled('dim', '·')}`, accepted.map(acceptanceText));
  printLines(`     ${styled('yellow', '!')}`, forPerson);
}

function markOf({ unchecked, wrong }: CheckResult): string {
  if (wrong.length > 0) return styled('red', '✗');
  return unchecked.length > 0 ? styled('dim', '·') : styled('green', '✓');
}

function printLines(prefix: string, lines: readonly string[]): void {
  for (const line of lines.slice(0, LINES_MAX)) print(`${prefix} ${printable(line)}`);
  const more = lines.length - LINES_MAX;
  if (more > 0) print(`${prefix} and ${grouped(more)} more`);
}
