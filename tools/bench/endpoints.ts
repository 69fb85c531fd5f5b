// npm run bench:endpoints: once with a closed port, and once with an endpoint that accepts connections and never answers,
// each on a separate stack. Exits with 1 after a problem, for example a renewal that was not charged exactly once.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine, wholeNumber } from '../../cli/command-line/options.ts';
import { BAD_ENDPOINTS, runBadEndpoint } from './bad-endpoints/run.ts';
import type { BadEndpoint, EndpointFigures, EndpointOptions } from './bad-endpoints/run.ts';
import { printEndpoints } from './report/endpoints-text.ts';
import { closeAll } from './stack/child-process.ts';
import { runOnOwnStack, withOwnRunOptions } from './stack/own-run.ts';
import type { OwnRun, OwnRunOptions } from './stack/own-run.ts';

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
  .option('--seconds <count>', 'length of each measurement', wholeNumber, 30);

const options = withOwnRunOptions(command).parse().opts<EndpointOptions & OwnRunOptions>();

await runOnOwnStack('endpoints', options, async (run) => {
  const cases: EndpointFigures[] = [];
  for (const kind of BAD_ENDPOINTS) cases.push(await runCase(kind, run));
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
