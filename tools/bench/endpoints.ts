// npm run bench:endpoints: measures how a bad webhook endpoint, for which the events of thousands of subscriptions
// wait, affects other work. By default the benchmark runs once with a closed port and once with an endpoint that
// accepts connections and never answers, each on a separate stack. The benchmark exits with 1 if it finds a problem,
// for example a renewal that was not charged exactly once.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Option } from 'commander';
import { commandLine, wholeNumber } from '../scripts/client/options.ts';
import { BAD_ENDPOINTS, runBadEndpoint } from './bad-endpoints/run.ts';
import type { BadEndpoint, EndpointFigures, EndpointOptions } from './bad-endpoints/run.ts';
import { printEndpoints } from './report/endpoints-text.ts';
import { closeAll, runOnOwnStack, withOwnRunOptions } from './stack/own-run.ts';
import type { OwnRun, OwnRunOptions } from './stack/own-run.ts';

interface Options extends EndpointOptions, OwnRunOptions {
  readonly endpoint: BadEndpoint | 'both';
}

const command = commandLine(
  'run bench:endpoints',
  'How a bad webhook endpoint, for which streams wait, affects other work.',
)
  .option(
    '--streams <count>',
    'subscriptions with an event for the bad endpoint',
    wholeNumber,
    2_000,
  )
  .option('--endpoints <count>', 'number of bad endpoints; each gets every event', wholeNumber, 1)
  .option('--seconds <count>', 'length of each measurement', wholeNumber, 30)
  .addOption(
    new Option(
      '--endpoint <kind>',
      'closed: a closed port; silent: never answers; both: one after the other',
    )
      .choices([...BAD_ENDPOINTS, 'both'])
      .default('both'),
  );

const options = withOwnRunOptions(command).parse().opts<Options>();

runOnOwnStack('endpoints', options, async (run) => {
  const { endpoint } = options;
  const cases: EndpointFigures[] = [];
  for (const kind of endpoint === 'both' ? BAD_ENDPOINTS : [endpoint]) {
    cases.push(await runCase(kind, run));
  }
  printEndpoints(options, run.runConditions, cases);
  return { figures: { cases }, problems: cases.flatMap(({ problems }) => problems) };
});

async function runCase(kind: BadEndpoint, run: OwnRun): Promise<EndpointFigures> {
  const dataDir = join(run.dataDir, kind);
  mkdirSync(dataDir, { recursive: true });
  const figures = await runBadEndpoint(kind, options, { ...run, dataDir });
  await closeAll(run.closers);
  return figures;
}
