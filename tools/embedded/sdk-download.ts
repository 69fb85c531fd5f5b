import { spawn } from 'node:child_process';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../../runtime/environment.ts';

export type SdkServer = 'dev-server' | 'time-skipping';

/** If no download has started after this time in ms, the machine counts as offline. */
const BEGIN_WITHIN_MS = 15_000;

/** Time limit in ms for the whole download: 100 MB at 3 Mbit/s. */
const DONE_WITHIN_MS = 300_000;

const CHILD = fileURLToPath(new URL('sdk-download-child.ts', import.meta.url));

export function sdkVersion(): string {
  const packageFile: unknown = createRequire(import.meta.url)('@temporalio/common/package.json');
  return (packageFile as { version: string }).version;
}

/** Returns why it failed. The SDK cannot cancel a download, so a separate process calls it and is killed. */
export async function downloadWithSdk(
  server: SdkServer,
  target: string,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(dirname(target), 'download-'));
  try {
    const failure = await runChild(server, folder);
    const program = (await readdir(folder)).find((name) => !name.endsWith('.downloading'));
    if (program === undefined) return failure ?? 'nothing was downloaded';
    // The SDK gives the file its final name when the download is complete, even if the server does not start.
    await rename(join(folder, program), target);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runChild(server: SdkServer, folder: string): Promise<string | undefined> {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, server, folder], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: childEnvironment({}),
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  let endedFor: string | undefined;
  const end = (reason: string): void => {
    endedFor = reason;
    child.kill('SIGKILL');
  };
  const begun = setTimeout(() => {
    void readdir(folder).then((names) => {
      if (names.length === 0) end('no answer from the download server');
    });
  }, BEGIN_WITHIN_MS);
  const done = setTimeout(() => end('the download took too long'), DONE_WITHIN_MS);
  try {
    return await new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('close', (code) => {
        resolve(endedFor ?? (code === 0 ? undefined : errors.trim().split('\n').at(-1)));
      });
    });
  } finally {
    clearTimeout(begun);
    clearTimeout(done);
  }
}
