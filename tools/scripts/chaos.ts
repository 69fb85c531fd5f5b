// npm run chaos, on a separate system: processes are killed and frozen, the gateway loses answers, the webhook receiver
// fails, and clients repeat their requests. Exits with 1 if there are violations, after it has listed them.

import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Option } from 'commander';
import { isRight, LEDGER_HEADER, ledgerLine, toMarkdown } from '../proof/chaos/report.ts';
import type { RunReport } from '../proof/chaos/report.ts';
import { run } from '../proof/chaos/run.ts';
import type { RunOptions } from '../proof/chaos/surroundings.ts';
import { commandLine, gatewayOption, wholeNumber } from '../../cli/command-line/options.ts';
import { STACK_PORTS, startStack } from './client/own-stack.ts';
import { grouped, print, runScript } from '../../cli/command-line/terminal.ts';
import { printResult } from '../../cli/verify/print-result.ts';

interface Options extends RunOptions {
  readonly port: number;
  readonly ledger?: string;
  readonly keep?: boolean;
}

const program = commandLine(
  'run chaos',
  'Injects faults while subscriptions are charged, then verifies all records.',
)
  .addOption(gatewayOption('where subscriptions are charged').default('sandbox'))
  .addOption(
    new Option('--temporal <kind>', 'cluster: on Postgres; dev: the dev server')
      .choices(['cluster', 'dev'])
      .default('cluster'),
  )
  .option('--cycles <count>', 'stop after this number of paid cycles', wholeNumber, 2_000)
  .option('--subscriptions <count>', 'number of subscriptions at the start', wholeNumber, 120)
  .option('--minutes <count>', 'time limit of the fault phase', wholeNumber, 60)
  .option(
    '--soak <minutes>',
    'run for this time at 60 % of the machine, with kills in the first half only, and measure what grows afterwards; no --cycles, --minutes and --pause',
    wholeNumber,
  )
  .option(
    '--seed <number>',
    'random seed: repeats the same subscriptions and kills',
    wholeNumber,
    1,
  )
  .option('--pause <seconds>', 'longest time from recovery to the next kill', wholeNumber, 24)
  .option(
    '--temporal-away <seconds>',
    'make Temporal unreachable for this time during the run',
    wholeNumber,
  )
  .option('--port <number>', 'first of ten ports', wholeNumber, 21_400)
  .option('--ledger <file>', 'append the result as a line, and print the total of all lines')
  .option('--keep', 'keep the data folder');

await runScript(async () => {
  const given = program.parse().opts<Omit<Options, 'metricsPort'>>();
  const ports = Object.fromEntries(STACK_PORTS.map((name, index) => [name, given.port + index]));
  const options: Options = { ...given, metricsPort: given.port + STACK_PORTS.indexOf('metrics') };
  const folder = mkdtempSync(join(tmpdir(), 'perennial-chaos-'));
  print(`\n  starting a separate system (data and logs in ${folder})`);
  const stack = await startStack({
    dataDir: folder,
    temporal: options.temporal,
    gateway: options.gateway,
    ports,
  });
  let isFine = false;
  try {
    const report = await run(stack.start, options, folder);
    print(`\n${toMarkdown(report)}`);
    report.results.forEach(printResult);
    if (options.ledger !== undefined) enter(options.ledger, report);
    isFine = isRight(report);
    return isFine ? 0 : 1;
  } finally {
    await stack.stop();
    if (isFine && !options.keep) rmSync(folder, { recursive: true, force: true });
    else print(`  data, logs and records are kept in ${folder}\n`);
  }
});

function enter(ledger: string, report: RunReport): void {
  if (!existsSync(ledger)) writeFileSync(ledger, LEDGER_HEADER);
  appendFileSync(ledger, ledgerLine(report));
  const runs = readFileSync(ledger, 'utf8').trim().split('\n').slice(1);
  const total = runs.reduce((sum, run) => sum + Number(run.split(',')[2]), 0);
  print(`  ${ledger}: ${grouped(total)} cycles in ${runs.length} runs\n`);
}
