import { writeFileSync } from 'node:fs';
import { openDriver } from '../../db/connection.ts';
import type { CycleAttempt } from '../../db/repositories/payments/cycle-attempts.ts';
import { readLedgerProblems } from '../verify/ledger-check.ts';
import { databaseUrlOf, instantOption, operatorCommand } from '../command-line/options.ts';
import type { Surroundings } from '../command-line/options.ts';
import { withDatabase } from '../command-line/servers.ts';
import { grouped, printable, styled } from '../command-line/terminal.ts';
import { explanationLines } from './explanation.ts';
import { explanationPage } from './page.ts';
import { findSubscriptionIds, readExplained } from './read.ts';

interface Options {
  readonly html?: string;
  readonly at?: number;
  readonly check?: boolean;
  readonly history?: string;
}

export const explainCommand = operatorCommand(
  'explain',
  'What a subscription does next, why, and why each charge was made.',
  (program, surroundings, exit) =>
    program
      .argument('[id]', 'id, receipt or e-mail address of the subscription, or id of its payment')
      .option(
        '--at <instant>',
        'as it was at this instant of its own time (ISO 8601)',
        instantOption,
      )
      .option('--html <file>', 'write one page with the drawn life of the subscription')
      .option(
        '--history <file>',
        'explain a run from its history as JSON, and compare it with the rows',
      )
      .option('--check', 'check every subscription against its ledger; exit code 1 if one is wrong')
      .action(async (given: string | undefined, options: Options) => {
        const { check, history } = options;
        const { print } = surroundings;
        if (check) exit(await checkAll(databaseUrlOf(surroundings), print));
        else if (given !== undefined) exit(await explainOne(given, options, surroundings));
        else if (history !== undefined) exit(await explainHistory(history, null, print));
        else throw new Error('Give the id of a subscription, --history or --check.');
      }),
);

async function explainOne(
  given: string,
  { at, html, history }: Options,
  surroundings: Surroundings,
): Promise<number> {
  const { print } = surroundings;
  const url = databaseUrlOf(surroundings);
  return withDatabase({ url, command: 'explain' }, async (db) => {
    const [subscriptionId, ...others] = await findSubscriptionIds(db, given);
    if (subscriptionId === undefined) throw new Error(`There is no subscription for ${given}.`);
    if (others.length > 0) {
      print('Several subscriptions match. Give the id of one:');
      [subscriptionId, ...others].forEach((id) => print(`  ${id}`));
      return 1;
    }
    const explained = await readExplained(db, subscriptionId, at ?? null);
    if (history !== undefined) return explainHistory(history, explained.attempts, print);
    if (html === undefined) explanationLines(explained).forEach((line) => print(line));
    else {
      writeFileSync(html, explanationPage(explained));
      print(`Written to ${html}.`);
    }
    return explained.problems?.length ? 1 : 0;
  });
}

/** Prints what the history says. Returns 1 if it contradicts itself, this build, or the rows. */
async function explainHistory(
  file: string,
  attempts: readonly CycleAttempt[] | null,
  print: (line: string) => void,
): Promise<number> {
  // Loads the Temporal worker, which no other use of this command needs.
  const { historyLines } = await import('./history.ts');
  const { lines, problems } = await historyLines(file, attempts);
  lines.forEach((line) => print(line));
  print('');
  if (problems.length === 0) print('By the rules of this build, everything in it follows.');
  else print(styled('bold', 'Wrong:'));
  problems.forEach((problem) => print(`  ${problem}`));
  return problems.length === 0 ? 0 : 1;
}

/** The snapshot of one statement. */
async function checkAll(url: string, print: (line: string) => void): Promise<number> {
  const sql = openDriver(url, { max: 1, connect_timeout: 10, onnotice: () => undefined });
  try {
    const wrong = await readLedgerProblems(sql);
    for (const { id, problem } of wrong) print(printable(`${id}: ${problem}`));
    const [row] = await sql<{ n: number }[]>`select count(*)::int as n from subscription`;
    print(
      `${grouped(row?.n ?? 0)} subscriptions, ${grouped(wrong.length)} differences from their ledgers.`,
    );
    return wrong.length === 0 ? 0 : 1;
  } finally {
    await sql.end({ timeout: 2 });
  }
}
