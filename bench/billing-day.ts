// npm run bench:billing-day: simulates a day on which all subscriptions fall due at one time, on a
// separate stack. It measures how late each charge is, the cost of a renewal, and the API's latency
// meanwhile. For comparison it measures the upper limit of Temporal. Exits with 1 if a renewal was not
// charged exactly once, or an event was not delivered.

import { writeFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { EVENT_TYPES } from '../domain/events.ts';
import { coreTime } from '../proof/chaos/machine.ts';
import { wholeNumber } from '../scripts/client/options.ts';
import { print } from '../scripts/client/terminal.ts';
import { runBillingDay } from './day/billing-day.ts';
import type { DayFigures, DayOptions } from './day/billing-day.ts';
import { allowConnections } from './day/set-up.ts';
import { CHARGED } from './day/wave.ts';
import { readRunConditions, stolenPercent } from './measure/machine.ts';
import { ratiosOf } from './report/billing-day-data.ts';
import { printBillingDay } from './report/billing-day-text.ts';
import { latenessSvg } from './report/lateness-plot.ts';
import { runOnOwnStack } from './stack/own-run.ts';
import type { TemporalKind } from './stack/measured-stack.ts';

interface Options {
  readonly subscriptions: number;
  readonly months: number;
  readonly temporal: TemporalKind;
  readonly floor?: number;
  readonly events: 'cycle' | 'all';
  readonly json?: string;
  readonly svg?: string;
  readonly keep?: boolean;
}

const MAX_FLOOR = 500;

const program = new Command('bench:billing-day')
  .description('Every subscription falls due at one time: lateness, costs, floors.')
  .option('--subscriptions <count>', 'number of subscriptions', wholeNumber, 1_000)
  .option('--months <count>', 'number of waves; the last one has background calls', wholeNumber, 3)
  .addOption(
    new Option('--temporal <kind>', 'dev: dev server with a state file; cluster: on Postgres')
      .choices(['dev', 'cluster'])
      .default('dev'),
  )
  .option(
    '--floor <count>',
    `bare workflows of each shape (default: --subscriptions, at most ${MAX_FLOOR})`,
    wholeNumber,
  )
  .addOption(
    new Option(
      '--events <types>',
      'webhooks of a renewal: cycle: only cycle_charged; all: all types',
    )
      .choices(['cycle', 'all'])
      .default('cycle'),
  )
  .option('--json <file>', 'write every figure as JSON')
  .option('--svg <file>', 'write a plot of the lateness')
  .option('--keep', 'keep the data folder');

const options = program.parse().opts<Options>();
const dayOptions: DayOptions = {
  subscriptions: options.subscriptions,
  months: options.months,
  temporal: options.temporal,
  floor: options.floor ?? Math.min(options.subscriptions, MAX_FLOOR),
  events: options.events === 'all' ? EVENT_TYPES : [CHARGED, 'intent.failed'],
};

runOnOwnStack('billing-day', options.keep === true, async (dataDir, closers) => {
  allowConnections();
  const runConditions = readRunConditions();
  const coresBefore = coreTime();
  const figures = await runBillingDay(dayOptions, dataDir, closers, (line) => print(`· ${line}`));
  const stolen = stolenPercent(coresBefore);
  const ratios = ratiosOf(figures);
  printBillingDay(dayOptions, runConditions, figures, ratios);
  if (options.json !== undefined) {
    const content = {
      surroundings: runConditions,
      stolenPercent: stolen,
      arguments: dayOptions,
      ...figures,
      ratios,
    };
    writeFileSync(options.json, `${JSON.stringify(content, null, 2)}\n`);
  }
  if (options.svg !== undefined) writeFileSync(options.svg, plotOf(figures));
  return figures.problems.length === 0 ? 0 : 1;
});

function plotOf({ waves }: DayFigures): string {
  return latenessSvg({
    title: `${options.subscriptions} subscriptions due at one time, Temporal ${options.temporal}`,
    months: waves.map(({ settledAfter }) => settledAfter),
  });
}
