// npm run bench:two-merchants: lets a small merchant's renewals fall due alone, and then at the same
// time as a big merchant's, on a separate stack. Exits with 1 if a renewal was not charged exactly
// once.

import { writeFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { coreTime } from '../proof/chaos/machine.ts';
import { wholeNumber } from '../scripts/client/options.ts';
import { print, styled } from '../scripts/client/terminal.ts';
import { allowConnections } from './day/set-up.ts';
import { readRunConditions, stolenPercent } from './measure/machine.ts';
import {
  p50p99,
  printHeading,
  printNote,
  printProblems,
  printRow,
  printRunConditions,
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
  .description('Lateness of a small merchant’s renewals, alone and beside a big merchant’s.')
  .option('--small <count>', 'subscriptions of the small merchant', wholeNumber, 50)
  .option('--big <count>', 'subscriptions of the big merchant', wholeNumber, 2_000)
  .addOption(
    new Option('--temporal <kind>', 'dev: dev server with a state file; cluster: on Postgres')
      .choices(['dev', 'cluster'])
      .default('dev'),
  )
  .option('--json <file>', 'write every figure as JSON')
  .option('--keep', 'keep the data folder');

const { json, keep, ...options } = program.parse().opts<Options>();

runOnOwnStack('two-merchants', keep === true, async (dataDir, closers) => {
  allowConnections();
  const runConditions = readRunConditions();
  const coresBefore = coreTime();
  const figures = await runTwoMerchants(options, dataDir, closers, (line) => print(`· ${line}`));
  const { smallAlone, smallBesideBig, big, problems } = figures;
  const server = options.temporal === 'dev' ? 'dev server on a file' : 'cluster on Postgres';
  print();
  print(styled('bold', `  ${options.small} due beside ${options.big} of another, ${server}`));
  printRunConditions(runConditions);
  printHeading('Settled in Postgres, s late', ['renewals', 'p50', 'p99', 'max']);
  printRow('small merchant, alone', p50p99(smallAlone));
  printRow('small merchant, beside the big one', p50p99(smallBesideBig));
  printRow('big merchant', p50p99(big));
  printNote(`p99 beside ÷ alone: ${shown((smallBesideBig.p99 ?? NaN) / (smallAlone.p99 ?? NaN))}`);
  printProblems(problems, 'every renewal was charged once');
  if (json !== undefined) {
    const stolen = stolenPercent(coresBefore);
    const content = {
      surroundings: runConditions,
      stolenPercent: stolen,
      arguments: options,
      ...figures,
    };
    writeFileSync(json, `${JSON.stringify(content, null, 2)}\n`);
  }
  return problems.length === 0 ? 0 : 1;
});
