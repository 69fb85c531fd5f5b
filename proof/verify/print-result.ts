import { grouped, print, styled } from '../../scripts/client/terminal.ts';
import type { CheckResult } from './invariants.ts';

/** Prints one invariant: the number of checked records, the violations, and the open reviews. */
export function printResult({ invariant, title, counted, wrong, forPerson }: CheckResult): void {
  const isFine = wrong.length === 0;
  const mark =
    counted === null ? styled('dim', '·') : styled(isFine ? 'green' : 'red', isFine ? '✓' : '✗');
  const looked =
    counted === null ? 'not checked: its book was not given' : `${grouped(counted)} checked`;
  print(`  ${mark} ${invariant}. ${title} ${styled('dim', `(${looked})`)}`);
  for (const line of wrong) print(`       ${line}`);
  for (const line of forPerson) print(`     ${styled('yellow', '!')} ${line}`);
}
