// npm run bench:two-merchants: a small merchant's renewals fall due alone, and then at the same instant
// as a big merchant's, on a stack of its own. Exits with 1 when a renewal was not charged once.

import { writeFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { coreTime } from '../scripts/chaos/machine.ts';
import { wholeNumber } from '../scripts/client/options.ts';
import { print, styled } from '../scripts/client/terminal.ts';
import { allowConnections } from './day/set-up.ts';
import { readSurroundings, stolenPercent } from './measure/machine.ts';
import {
  p50p99,
  printHeading,
  printNote,
  printProblems,
  printRow,
  printSurroundings,
  shown,
} from './report/text.ts';
import { runOnOwnStack } from './stack/own-run.ts';
import { runTwoMerchants } from './two-merchants/run.ts';
import type { TwoMerchantsOptions } from './two-merchants/run.ts';

interface Options extends TwoMerchantsOptions {
  readonly json?: string;
  readonly keep?: boolean;
}

const program = new Command('bench:two-merchants')
  .description('A small merchant’s renewals, alone and beside a big merchant’s.')
  .option('--small <count>', 'subscriptions of the small merchant', wholeNumber, 50)
  .option('--big <count>', 'subscriptions of the big merchant', wholeNumber, 2_000)
  .addOption(
    new Option('--temporal <kind>', 'dev server on a file, or cluster on Postgres')
      .choices(['dev', 'cluster'])
      .default('dev'),
  )
  .option('--json <file>', 'write every figure as JSON')
  .option('--keep', 'keep the data folder');

const { json, keep, ...options } = program.parse().opts<Options>();

runOnOwnStack('two-merchants', keep === true, async (dataDir, closers) => {
  allowConnections();
  const surroundings = readSurroundings();
  const coresBefore = coreTime();
  const figures = await runTwoMerchants(options, dataDir, closers, (line) => print(`· ${line}`));
  const { smallAlone, smallBesideBig, big, problems } = figures;
  const server = options.temporal === 'dev' ? 'dev server on a file' : 'cluster on Postgres';
  print();
  print(styled('bold', `  ${options.small} due beside ${options.big} of another, ${server}`));
  printSurroundings(surroundings);
  printHeading('Settled in Postgres, s late', ['renewals', 'p50', 'p99', 'max']);
  printRow('small merchant, alone', p50p99(smallAlone));
  printRow('small merchant, beside the big one', p50p99(smallBesideBig));
  printRow('big merchant', p50p99(big));
  printNote(`p99 beside ÷ alone: ${shown((smallBesideBig.p99 ?? NaN) / (smallAlone.p99 ?? NaN))}`);
  printProblems(problems, 'every renewal was charged once');
  if (json !== undefined) {
    const stolen = stolenPercent(coresBefore);
    const content = { surroundings, stolenPercent: stolen, arguments: options, ...figures };
    writeFileSync(json, `${JSON.stringify(content, null, 2)}\n`);
  }
  return problems.length === 0 ? 0 : 1;
});
