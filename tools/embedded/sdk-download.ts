import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cachedFolder } from './cache.ts';
import { CommandError, runCommand } from './run-command.ts';
import { withStillWorking } from './progress.ts';
import type { Report } from './progress.ts';

/** The servers that the SDK downloads, each with the name of its program. */
const PROGRAMS = { 'dev-server': 'temporal', 'time-skipping': 'temporal-test-server' } as const;
export type SdkServer = keyof typeof PROGRAMS;

/** If no download has started after this time in ms, the machine counts as offline. */
const BEGIN_WITHIN_MS = 15_000;

/** Time limit in ms for the whole download: 100 MB at 3 Mbit/s. */
const DONE_WITHIN_MS = 300_000;

const CHILD = fileURLToPath(new URL('sdk-download-child.ts', import.meta.url));

/** The path of the program in the cache, once {@link downloadWithSdk} has put it there. */
export function sdkProgram(server: SdkServer, cacheDir: string): string {
  return join(cacheDir, entryOf(server), PROGRAMS[server]);
}

function entryOf(server: SdkServer): string {
  const packageFile: unknown = createRequire(import.meta.url)('@temporalio/common/package.json');
  return `${PROGRAMS[server]}-sdk-${(packageFile as { version: string }).version}`;
}

/** Returns the program's path in the cache. Throws CommandError. */
export async function downloadWithSdk(
  server: SdkServer,
  cacheDir: string,
  report: Report,
): Promise<string> {
  const what = `${server === 'dev-server' ? 'Temporal' : 'test'} server`;
  await cachedFolder(cacheDir, entryOf(server), async (building) => {
    report(`looking for a ${what} to download`);
    await withStillWorking(report, `downloading the ${what}`, () =>
      download(server, join(building, PROGRAMS[server])),
    );
  });
  return sdkProgram(server, cacheDir);
}

/** The SDK cannot cancel a download, so a separate process calls it and is killed. */
async function download(server: SdkServer, target: string): Promise<void> {
  const folder = await mkdtemp(join(dirname(target), 'download-'));
  try {
    const failure = await runChild(server, folder);
    const program = (await readdir(folder)).find((name) => !name.endsWith('.downloading'));
    if (program === undefined) throw new CommandError(`download: ${failure}`);
    // The SDK gives the file its final name when the download is complete, even if the server does not start.
    await rename(join(folder, program), target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns why it failed. */
async function runChild(server: SdkServer, folder: string): Promise<string> {
  const offline = new AbortController();
  const begun = setTimeout(() => {
    void readdir(folder).then((names) => {
      if (names.length === 0) offline.abort();
    });
  }, BEGIN_WITHIN_MS);
  try {
    const { signal } = offline;
    const args = ['--import', 'tsx', CHILD, server, folder];
    await runCommand(process.execPath, args, { timeoutMs: DONE_WITHIN_MS, signal });
    return 'nothing was downloaded';
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (offline.signal.aborted) return 'no answer from the download server';
    return error.message.split('\n').at(-1) ?? '';
  } finally {
    clearTimeout(begun);
  }
}
