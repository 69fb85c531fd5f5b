import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';

const FOLDER = 'test/replay/histories';
const PATHS = [
  'checkout-expired',
  'checkout-then-sleep',
  'dunning-to-recovery',
  'edit-pause-cancel',
  'late-charge',
  'maintenance',
  'operator',
  'payment',
  'payment-review',
  'payment-unknown',
  'refund',
  'review',
  'setup-method',
  'trial-to-end',
  'unknown-outcome',
  'webhook-stream',
];

let workflowBundle: WorkflowBundle;
let files: string[];

beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR'), shutdownSignals: [] });
  workflowBundle = await bundleWorkflowCode({
    workflowsPath: resolve('workflows/index.ts'),
    logger: new DefaultLogger('ERROR'),
  });
  files = (await readdir(FOLDER)).filter((name) => name.endsWith('.json')).toSorted();
});

const read = (file: string) => readFile(`${FOLDER}/${file}`, 'utf8');

describe('a recorded history', () => {
  test('exists for every path [design §3]', () => {
    expect([...new Set(files.map((name) => name.replace(/-\d+\.json$/, '')))]).toEqual(PATHS);
  });

  test('is replayed by this build, every run of every path [design §3]', async () => {
    async function* histories() {
      for (const file of files) {
        yield { workflowId: file, history: historyFromJSON(JSON.parse(await read(file))) };
      }
    }
    const failed: string[] = [];
    let count = 0;
    for await (const result of Worker.runReplayHistories({ workflowBundle }, histories())) {
      count += 1;
      if (result.error) failed.push(`${result.workflowId}: ${result.error.message}`);
    }
    expect(failed).toEqual([]);
    expect(count).toBe(files.length);
  });

  test('that this build could not have made is noticed [design §3]', async () => {
    const changed = (await read('trial-to-end-1.json')).replaceAll('chargeAttempt', 'chargeTwice');
    const replay = Worker.runReplayHistory({ workflowBundle }, JSON.parse(changed), 'changed');
    await expect(replay).rejects.toThrow(/TMPRL1100|[Nn]ondeterminism/);
  });
});
