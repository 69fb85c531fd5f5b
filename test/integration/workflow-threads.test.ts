import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { bundledProgram } from '../../tools/embedded/program-bundle.ts';

/** Prints whether a promise hook is allowed, for the main thread and for a worker thread. */
const PROBE = `
  const { isMainThread, Worker } = require('node:worker_threads');
  const name = isMainThread ? 'main thread' : 'workflow thread';
  try {
    require('node:v8').promiseHooks.createHook({ init() {} })();
    console.log(name + ' can');
  } catch (error) {
    console.log(name + ' cannot: ' + error.message);
  }
  const storage = new (require('node:async_hooks').AsyncLocalStorage)();
  storage.run('context kept', async () => {
    await null;
    console.log(storage.getStore());
    if (isMainThread) new Worker(__filename);
  });
`;

test('a worker process takes no promise stack traces in its workflow threads', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'perennial-test-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const probe = join(folder, 'probe.cjs');
  await writeFile(probe, PROBE);
  const flags = bundledProgram(inject('programFolder'), 'worker.ts').slice(0, -1);
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, probe]);
  expect(stdout.trim().split('\n')).toEqual([
    'main thread can',
    'context kept',
    'workflow thread cannot: stack traces of promises are off in workflow threads',
    'context kept',
  ]);
});

test('the API process keeps promise stack traces', () => {
  expect(bundledProgram('/programs', 'api/main.ts')).toEqual([
    '--enable-source-maps',
    '--max-semi-space-size=32',
    '/programs/api/main.mjs',
  ]);
});
