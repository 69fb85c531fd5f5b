// npm run bench:billing-day, on a separate stack. Also measures the API's latency during the renewals. The baseline is
// workflows whose activity does nothing. Exits with 1 after a problem, for example a renewal charged twice.

import { commandLine, wholeNumber } from '../../cli/command-line/options.ts';
import { runBillingDay } from './day/billing-day.ts';
import { ratioToFloor } from './report/billing-day-data.ts';
import { printBillingDay } from './report/billing-day-text.ts';
import { runOnOwnStack, withOwnRunOptions } from './stack/own-run.ts';
import type { OwnRunOptions } from './stack/own-run.ts';

interface Options extends OwnRunOptions {
  readonly subscriptions: number;
  readonly months: number;
  readonly reference?: number;
  readonly cold: boolean;
  readonly slow: boolean;
  readonly floor?: number;
}

const MAX_FLOOR = 500;

const command = commandLine(
  'run bench:billing-day',
  'Every subscription falls due at one time: lateness, costs, baselines.',
)
  .option('--subscriptions <count>', 'number of subscriptions', wholeNumber, 1_000)
  .option(
    '--months <count>',
    'number of months; in the last of several two merchants make calls',
    wholeNumber,
    3,
  )
  .option(
    '--floor <count>',
    `baseline workflows (default: --subscriptions, at most ${MAX_FLOOR})`,
    wholeNumber,
  )
  .option(
    '--reference <count>',
    'number of subscriptions that first fall due alone, with a warm cache (default: none)',
    wholeNumber,
  )
  .option('--cold', 'restart the worker before each month, so that it has cached no run', false)
  .option('--slow', 'run a busy loop on each core while the renewals are due', false);

const { floor, ...options } = withOwnRunOptions(command).parse().opts<Options>();
const dayOptions = {
  ...options,
  floor: floor ?? Math.min(options.subscriptions, MAX_FLOOR),
};

await runOnOwnStack('billing-day', dayOptions, async (run) => {
  const figures = await runBillingDay(dayOptions, run);
  const ratio = ratioToFloor(figures);
  printBillingDay(dayOptions, run.runConditions, figures, ratio);
  return { figures: { ...figures, ratioToFloor: ratio }, problems: figures.problems };
});
