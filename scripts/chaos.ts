// npm run chaos: a whole system of its own, its processes killed and frozen at random, its gateway
// losing answers, its receivers failing, its clients repeating, while subscriptions fall due all the
// time. Then everybody is given time to recover, and the books are judged. Exits with 1 and names
// what is wrong otherwise.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { isRight, outageText, recoveryText, toMarkdown } from './chaos/report.ts';
import type { RunReport } from './chaos/report.ts';
import { run } from './chaos/run.ts';
import type { RunOptions } from './chaos/surroundings.ts';
import { wholeNumber } from './client/options.ts';
import { startStack } from './client/own-stack.ts';
import { print, runScript, styled } from './client/terminal.ts';
import { printVerdict } from './verify/print-verdict.ts';

interface Options extends RunOptions {
  readonly port: number;
  readonly report?: string;
  readonly keep?: boolean;
}

const program = new Command('chaos')
  .description(
    'Kills, freezes, loses and declines while subscriptions are charged; judges the books.',
  )
  .option('--cycles <count>', 'go on until so many cycles are paid', wholeNumber, 2_000)
  .option('--subscriptions <count>', 'how many there are at first', wholeNumber, 120)
  .option('--minutes <count>', 'stop after so long, whatever is paid', wholeNumber, 60)
  .option('--seed <number>', 'the same subscriptions and the same kills again', wholeNumber, 1)
  .option('--pause <seconds>', 'at most so long from recovery to the next kill', wholeNumber, 24)
  .option('--temporal-away <seconds>', 'put it out of reach in the middle', wholeNumber)
  .option('--port <number>', 'first of its five ports', wholeNumber, 21_400)
  .option('--report <file>', 'write the report as Markdown')
  .option('--keep', 'keep the data folder');

await runScript(async () => {
  const options = program.parse().opts<Options>();
  const folder = mkdtempSync(join(tmpdir(), 'perennial-chaos-'));
  print(`\n  starting a system of its own, Temporal on Postgres (data and logs in ${folder})`);
  const stack = await startStack({
    dataDir: folder,
    temporal: 'cluster',
    ports: {
      api: options.port,
      gateway: options.port + 1,
      postgres: options.port + 2,
      temporal: options.port + 3,
    },
  });
  let isFine = false;
  try {
    const report = await run(stack.start, options, folder);
    printReport(report);
    if (options.report !== undefined) writeFileSync(options.report, toMarkdown(report));
    isFine = isRight(report);
    return isFine ? 0 : 1;
  } finally {
    await stack.stop();
    if (isFine && !options.keep) rmSync(folder, { recursive: true, force: true });
    else print(`  data, logs and books are kept in ${folder}\n`);
  }
});

function printReport(report: RunReport): void {
  print();
  for (const [label, text] of report.figures) print(`  ${label.padEnd(36)}${text}`);
  print();
  if (report.outage !== null) print(`  ${outageText(report.outage)}\n`);
  for (const recovery of report.recovery) print(`  ${recoveryText(recovery)}`);
  print();
  report.verdicts.forEach(printVerdict);
  for (const line of report.wrong.slice(0, 50)) print(styled('red', `  ✗ ${line}`));
  print();
}
