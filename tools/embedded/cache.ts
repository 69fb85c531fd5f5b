import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identify, isRunning } from './process-identity.ts';
import type { ProcessIdentity } from './process-identity.ts';
import type { Report } from './progress.ts';

/** Age in ms after which the temporary folder of a failed build is deleted. */
const ABANDONED_AFTER_MS = 3_600_000;

const LOCK_POLL_MS = 500;

/**
 * Returns `<root>/<entry>`, which `build` fills if it is missing. It is complete or absent; one process builds at a
 * time.
 */
export async function cachedFolder(
  root: string,
  entry: string,
  report: Report,
  build: (folder: string) => Promise<void>,
): Promise<string> {
  const target = join(root, entry);
  if (existsSync(target)) return target;
  await mkdir(root, { recursive: true });
  const release = await lock(root, entry, target, report);
  try {
    if (existsSync(target)) return target;
    await removeAbandoned(root, entry);
    const folder = await mkdtemp(join(root, `.${entry}-`));
    try {
      await build(folder);
      await rename(folder, target);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      if (!existsSync(target)) throw error;
    }
    return target;
  } finally {
    await release();
  }
}

/** Waits until this process has the build lock or the entry exists. Returns the function that unlocks. */
async function lock(
  root: string,
  entry: string,
  target: string,
  report: Report,
): Promise<() => Promise<void>> {
  const lockFile = join(root, `.${entry}.lock`);
  const self = identify(process.pid);
  let hasReported = false;
  for (;;) {
    try {
      await writeFile(lockFile, JSON.stringify(self), { flag: 'wx' });
      return () => rm(lockFile, { force: true });
    } catch (error) {
      if (!isCode(error, 'EEXIST')) throw error;
    }
    const holder = await readHolder(lockFile);
    if (holder !== undefined && !isRunning(holder)) {
      await rm(lockFile, { force: true });
      continue;
    }
    if (existsSync(target)) return async () => undefined;
    if (!hasReported) report(`another process is preparing ${entry}; waiting for it`);
    hasReported = true;
    await new Promise((resolve) => setTimeout(resolve, LOCK_POLL_MS));
  }
}

/** The process that holds the lock. Undefined while the lock file is being written, and after its removal. */
async function readHolder(lockFile: string): Promise<ProcessIdentity | undefined> {
  try {
    return JSON.parse(await readFile(lockFile, 'utf8')) as ProcessIdentity;
  } catch {
    const age = await stat(lockFile).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    );
    // If the lock file is unreadable for 10 s, its creator died before it wrote the content.
    return age > 10_000 ? { pid: 0, startedAs: 'never' } : undefined;
  }
}

async function removeAbandoned(root: string, entry: string): Promise<void> {
  for (const name of await readdir(root)) {
    if (!name.startsWith(`.${entry}-`)) continue;
    const path = join(root, name);
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > ABANDONED_AFTER_MS) await rm(path, { recursive: true, force: true });
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
