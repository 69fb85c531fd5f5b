import { grouped, print, styled } from '../client/terminal.ts';
import type { Verdict } from './invariants.ts';

/** One invariant on the terminal: what was looked at, what is wrong, and what waits for a person. */
export function printVerdict({ invariant, title, counted, wrong, forPerson }: Verdict): void {
  const isFine = wrong.length === 0;
  const mark =
    counted === null ? styled('dim', '·') : styled(isFine ? 'green' : 'red', isFine ? '✓' : '✗');
  const looked =
    counted === null ? 'not judged: its book was not given' : `${grouped(counted)} looked at`;
  print(`  ${mark} ${invariant}. ${title} ${styled('dim', `(${looked})`)}`);
  for (const line of wrong) print(`       ${line}`);
  for (const line of forPerson) print(`     ${styled('yellow', '!')} ${line}`);
}
