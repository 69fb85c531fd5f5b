import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { Client } from '@temporalio/client';
import { createTemporalClient } from '../../temporal/client.ts';
import { findDemoFile } from '../command-line/demo-file.ts';
import { loadOperatorConfig } from '../command-line/config.ts';
import { operatorCommand, wholeNumber } from '../command-line/options.ts';
import { grouped } from '../command-line/terminal.ts';
import { scrubbed } from './scrub.ts';

const RUNNING = `WorkflowType = 'subscription' and ExecutionStatus = 'Running'`;
/** The sample is taken from this many times as many workflows, the latest ones. */
const OF_THE_LATEST = 20;

interface Options {
  readonly download: number;
}

export const historiesCommand = operatorCommand(
  'histories',
  'Downloads histories of running subscriptions for npm run replay, without personal data.',
  (program, surroundings) =>
    program
      .argument('[folder]', 'where to write them', 'histories')
      .requiredOption('--download <count>', 'number of histories', wholeNumber)
      .action(async (folder: string, { download }: Options) => {
        const config = loadOperatorConfig(surroundings.environment);
        const demo = config.databaseUrl === undefined ? findDemoFile(config.dataDir) : undefined;
        const temporal = createTemporalClient({ ...config, ...demo });
        try {
          mkdirSync(folder, { recursive: true });
          let count = 0;
          for await (const [name, json] of sampleOf(temporal.client, download)) {
            writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(json)}\n`);
            count += 1;
          }
          surroundings.print(`${grouped(count)} histories written to ${folder}.`);
        } finally {
          await temporal.close();
        }
      }),
);

/** Yields every k-th of the latest running subscriptions, at most `size`. */
async function* sampleOf(client: Client, size: number): AsyncGenerator<readonly [string, unknown]> {
  const { count: running } = await client.workflow.count(RUNNING);
  const every = Math.max(1, Math.floor(Math.min(running, OF_THE_LATEST * size) / size));
  let [seen, taken] = [0, 0];
  for await (const { workflowId, runId } of client.workflow.list({ query: RUNNING })) {
    seen += 1;
    if (seen % every !== 0) continue;
    const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
    yield [runId, scrubbed(JSON.parse(historyToJSON(history)))];
    taken += 1;
    if (taken >= size) return;
  }
}
