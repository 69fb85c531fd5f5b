// npm run bench:endpoints: measures how thousands of streams that wait for a bad webhook endpoint
// affect other work. It runs once with a closed port and once with an endpoint that accepts connections
// and never answers, each on a separate stack. Exits with 1 if an event of another merchant or a
// renewal failed.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { coreTime } from '../proof/chaos/machine.ts';
import { wholeNumber } from '../scripts/client/options.ts';
import { print } from '../scripts/client/terminal.ts';
import type { Closer } from '../runtime/shutdown.ts';
import { BAD_ENDPOINTS, runBadEndpoint } from './bad-endpoints/run.ts';
import type { BadEndpoint, EndpointFigures, EndpointOptions } from './bad-endpoints/run.ts';
import { allowConnections } from './day/set-up.ts';
import { readRunConditions, stolenPercent } from './measure/machine.ts';
import { printEndpoints } from './report/endpoints-text.ts';
import { closeAll, runOnOwnStack } from './stack/own-run.ts';

interface Options extends EndpointOptions {
  readonly endpoint: BadEndpoint | 'both';
  readonly json?: string;
  readonly keep?: boolean;
}

const program = new Command('bench:endpoints')
  .description('How streams that wait for a bad webhook endpoint affect other work.')
  .option(
    '--streams <count>',
    'subscriptions with an event for the bad endpoint',
    wholeNumber,
    2_000,
  )
  .option('--endpoints <count>', 'bad endpoints, each for every event', wholeNumber, 1)
  .option('--seconds <count>', 'length of each measurement', wholeNumber, 30)
  .addOption(
    new Option(
      '--endpoint <kind>',
      'closed: a closed port; silent: never answers; both: one after the other',
    )
      .choices([...BAD_ENDPOINTS, 'both'])
      .default('both'),
  )
  .addOption(
    new Option('--temporal <kind>', 'dev: dev server with a state file; cluster: on Postgres')
      .choices(['dev', 'cluster'])
      .default('dev'),
  )
  .option('--json <file>', 'write every figure as JSON')
  .option('--keep', 'keep the data folders');

const { json, keep, endpoint, ...options } = program.parse().opts<Options>();

runOnOwnStack('endpoints', keep === true, async (dataDir, closers) => {
  allowConnections();
  const runConditions = readRunConditions();
  const coresBefore = coreTime();
  const cases: EndpointFigures[] = [];
  for (const kind of endpoint === 'both' ? BAD_ENDPOINTS : [endpoint]) {
    cases.push(await runCase(kind, join(dataDir, kind), closers));
  }
  printEndpoints(options, runConditions, cases);
  if (json !== undefined) {
    const stolen = stolenPercent(coresBefore);
    const content = {
      surroundings: runConditions,
      stolenPercent: stolen,
      arguments: options,
      cases,
    };
    writeFileSync(json, `${JSON.stringify(content, null, 2)}\n`);
  }
  return cases.every(({ problems }) => problems.length === 0) ? 0 : 1;
});

/** Stops the stack at its end, before the next case starts its own. */
async function runCase(
  kind: BadEndpoint,
  dataDir: string,
  closers: Closer[],
): Promise<EndpointFigures> {
  mkdirSync(dataDir, { recursive: true });
  const figures = await runBadEndpoint(kind, options, dataDir, closers, (line) =>
    print(`· ${line}`),
  );
  await closeAll(closers);
  return figures;
}
