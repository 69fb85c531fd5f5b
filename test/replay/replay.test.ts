import { readdir, readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import type { WorkflowBundle } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';
import { bundleWorkflows } from '../../runtime/workflow-bundle.ts';

/** Has a folder for each release, with the histories of the paths that the release added. */
const HISTORIES = 'test/replay/histories';
const RECORDERS = 'test/replay';

let workflowBundle: WorkflowBundle;
/** With the release’s folder: `1.0.0/asleep-1.json`. */
let files: string[];

beforeAll(async () => {
  const logging = { forward: {}, filter: { core: 'ERROR', other: 'ERROR' } } as const;
  const logger = new DefaultLogger('ERROR');
  Runtime.install({ logger, shutdownSignals: [], telemetryOptions: { logging } });
  workflowBundle = await bundleWorkflows();
  const found = await readdir(HISTORIES, { recursive: true });
  files = found.filter((name) => name.endsWith('.json')).toSorted();
});

const read = (file: string) => readFile(`${HISTORIES}/${file}`, 'utf8');

/** Returns the names of the paths that the recorders write, sorted. */
async function recordedPaths(): Promise<string[]> {
  const names = (await readdir(RECORDERS)).filter((name) => name.endsWith('.record.ts'));
  const sources = await Promise.all(names.map((name) => readFile(`${RECORDERS}/${name}`, 'utf8')));
  const calls = sources.flatMap((source) => [
    ...source.matchAll(/\bkeep\w*\(\s*env,\s*'([\w-]+)'/g),
  ]);
  return calls.map(([, path]) => String(path)).toSorted();
}

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
  test('are exactly those of the recorded paths', async () => {
    const paths = files.map((name) => name.replace(/^[\d.]+\/(.+)-\d+\.json$/, '$1'));
    expect([...new Set(paths)].toSorted()).toEqual(await recordedPaths());
    expect(paths.length).toBeGreaterThan(35);
  });

  test('are all replayed by this build without nondeterminism', async () => {
    const { failed, count } = await replayAll(workflowBundle);
    expect([...failed]).toEqual([]);
    expect(count).toBe(files.length);
  });

  test('fail to replay when a recorded activity has another name', async () => {
    const history = await read('1.0.0/maintenance-1.json');
    const changed = history.replaceAll('"sweep"', '"sweepTwice"');
    const replay = Worker.runReplayHistory({ workflowBundle }, JSON.parse(changed), 'changed');
    await expect(replay).rejects.toThrow(/TMPRL1100|[Nn]ondeterminism/);
  });

  test('fail to replay when workflows have a new first command, unless it is behind a patch', async () => {
    const workflowsPath = resolve('test/replay/changed-workflows/index.ts');
    const changed = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
    const { failed, count } = await replayAll(changed);
    expect(count).toBe(files.length);
    expect(files.filter((file) => !failed.has(file))).toEqual([]);
    const { failed: patchedFailed } = await replayAll(changed, 'patched/');
    expect([...patchedFailed]).toEqual([]);
  });
});
