import { writeFileSync } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { and, eq, inArray, isNull } from 'drizzle-orm';
import type { Db } from '../../db/client.ts';
import { findSettings } from '../../db/repositories/merchants/settings.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import { DEFAULT_CARD_LIMITS } from '../../domain/card-limits.ts';
import { databaseUrlOf, operatorCommand, wholeNumber } from '../command-line/options.ts';
import type { Surroundings } from '../command-line/options.ts';
import { withDatabase } from '../command-line/servers.ts';
import { grouped, printable } from '../command-line/terminal.ts';
import { addChargingOptions, settingsChanges } from '../merchant/configure.ts';
import type { ConfigureOptions } from '../merchant/configure.ts';
import { compare, forecast } from './forecast.ts';
import { historyLines, rulesInHistory } from './history.ts';
import { csvText, forecastSvg, tableLines } from './report.ts';

interface Options extends ConfigureOptions {
  readonly days: number;
  readonly declines: number;
  readonly history?: number;
  readonly csv?: string;
  readonly svg?: string;
}

const DAY_MS = 86_400_000;

export const simulateCommand = operatorCommand(
  'simulate',
  'When and what the subscriptions of a merchant would be charged under other settings. Changes nothing.',
  (program, surroundings) =>
    addChargingOptions(program)
      .argument('<merchantId>', 'id of the merchant (mer_…)')
      .option('--days <count>', 'number of days from now', wholeNumber, 90)
      .option('--declines <percent>', 'share of all attempts that is declined', percent, 10)
      .option(
        '--history <days>',
        'what the rules make of the attempts of so many days',
        wholeNumber,
      )
      .option('--csv <file>', 'write each attempt, before and after the change')
      .option('--svg <file>', 'write a plot of charges and money a day')
      .action((merchantId: string, options: Options) => run(merchantId, options, surroundings)),
);

async function run(merchantId: string, options: Options, surroundings: Surroundings) {
  const { days, declines, csv, svg } = options;
  const { print } = surroundings;
  const place = { url: databaseUrlOf(surroundings), command: 'simulate' };
  await withDatabase(place, async (db) => {
    const settings = await findSettings(db, merchantId);
    if (!settings) throw new Error(`There is no merchant ${printable(merchantId)}.`);
    const changes = settingsChanges(options, settings);
    const fromAt = Date.now();
    if (options.history !== undefined) {
      const sinceAt = fromAt - options.history * DAY_MS;
      const { cardLimits: limits = DEFAULT_CARD_LIMITS } = { ...settings, ...changes };
      const rules = await rulesInHistory(db, { merchantId, sinceAt, limits });
      historyLines(options.history, rules).forEach((line) => print(line));
      return;
    }
    const states = await runningStates(db, merchantId);
    const period = { fromAt, untilAt: fromAt + days * DAY_MS, declineRate: declines / 100 };
    const { retryPlan, cardLimits } = settings;
    const present = { retryPlan, ...(cardLimits && { cardLimits }) };
    const before = forecast(states, present, period);
    const after = forecast(states, { ...present, ...changes }, period);
    print(
      `${grouped(states.length)} running subscriptions, ${days} days, ${declines} % of all attempts declined.`,
    );
    tableLines({ before, after }, period).forEach((line) => print(line));
    if (csv !== undefined) writeFileSync(csv, csvText(compare(before, after)));
    if (svg !== undefined) writeFileSync(svg, forecastSvg({ before, after }, period));
  });
}

/** Without those on test clocks, whose time is their own. */
async function runningStates(db: Db, merchantId: string) {
  const rows = await db
    .select({ state: subscriptions.state })
    .from(subscriptions)
    .where(
      and(
        eq(subscriptions.merchantId, merchantId),
        inArray(subscriptions.status, ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED']),
        isNull(subscriptions.testClockId),
      ),
    );
  return rows.map(({ state }) => state);
}

function percent(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 100) return value;
  throw new InvalidArgumentError('Give a number from 0 to 100.');
}
