import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';

const FOLDER = 'test/replay/histories';
const PATHS = [
  'asleep',
  'cancelled-in-doubt',
  'checkout-cancelled',
  'checkout-declined',
  'checkout-expired',
  'checkout-expired-asleep',
  'checkout-then-sleep',
  'dunning-to-recovery',
  'edit-pause-cancel',
  'full-while-asleep',
  'gave-up',
  'growing-backoff',
  'jitter',
  'late-charge',
  'late-charge-none',
  'long-on-a-clock',
  'maintenance',
  'maintenance-long',
  'one-task-asleep',
  'one-task-commands',
  'one-task-continued',
  'one-task-dunning',
  'one-task-over-budget',
  'one-task-to-end',
  'one-task-trial',
  'operator',
  'operator-signals',
  'payer-confirmation',
  'payer-confirmation-cancelled',
  'payment',
  'payment-long',
  'payment-review',
  'payment-unknown',
  'poked',
  'rechecked',
  'refund',
  'refund-review',
  'refund-unknown',
  'refused-signals',
  'restarted',
  'review',
  'second-shape-asleep',
  'second-shape-command-after-advance',
  'second-shape-commands',
  'second-shape-continued',
  'second-shape-dunning',
  'second-shape-new-card-keeps-plan',
  'second-shape-new-card-restarts-plan',
  'second-shape-over-budget',
  'second-shape-to-end',
  'second-shape-trial',
  'setup-method',
  'setup-method-unknown',
  'trial-asleep',
  'trial-to-end',
  'unchecked-signal',
  'unknown-outcome',
  'upfront',
  'webhook-endpoint',
  'webhook-endpoint-long',
];

let workflowBundle: WorkflowBundle;
let files: string[];

beforeAll(async () => {
  const logging = { forward: {}, filter: { core: 'ERROR', other: 'ERROR' } } as const;
  const logger = new DefaultLogger('ERROR');
  Runtime.install({ logger, shutdownSignals: [], telemetryOptions: { logging } });
  workflowBundle = await bundle('workflows/index.ts');
  files = (await readdir(FOLDER)).filter((name) => name.endsWith('.json')).toSorted();
});

const bundle = (file: string) =>
  bundleWorkflowCode({ workflowsPath: resolve(file), logger: new DefaultLogger('ERROR') });

const read = (file: string) => readFile(`${FOLDER}/${file}`, 'utf8');

/** Replays every file. Returns the files that fail, with the reason, and the number of files. */
async function replayAll(build: WorkflowBundle, prefix = '') {
  async function* histories() {
    for (const file of files) {
      const history = historyFromJSON(JSON.parse(await read(file)));
      yield { workflowId: `${prefix}${file}`, history };
    }
  }
  const failed = new Map<string, string>();
  let count = 0;
  const results = Worker.runReplayHistories({ workflowBundle: build }, histories());
  for await (const { workflowId, error } of results) {
    count += 1;
    if (error) failed.set(workflowId, error.message);
  }
  return { failed, count };
}

describe('the recorded histories', () => {
  test('are exactly those of the listed paths', () => {
    expect([...new Set(files.map((name) => name.replace(/-\d+\.json$/, '')))]).toEqual(PATHS);
  });

  test('are all replayed by this build without nondeterminism', async () => {
    const { failed, count } = await replayAll(workflowBundle);
    expect([...failed]).toEqual([]);
    expect(count).toBe(files.length);
  });

  test('fail to replay when a recorded activity has another name', async () => {
    const changed = (await read('trial-to-end-1.json')).replaceAll('chargeAttempt', 'chargeTwice');
    const replay = Worker.runReplayHistory({ workflowBundle }, JSON.parse(changed), 'changed');
    await expect(replay).rejects.toThrow(/TMPRL1100|[Nn]ondeterminism/);
  });

  test('fail to replay when workflows have a new first command, unless it is behind a patch', async () => {
    const changed = await bundle('test/replay/changed-workflows/index.ts');
    const { failed, count } = await replayAll(changed);
    expect(count).toBe(files.length);
    // The run in this file has no command yet.
    expect(files.filter((file) => !failed.has(file))).toEqual(['unknown-outcome-3.json']);
    const { failed: patchedFailed } = await replayAll(changed, 'patched/');
    expect([...patchedFailed]).toEqual([]);
  });
});
