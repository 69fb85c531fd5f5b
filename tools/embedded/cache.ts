import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Age in ms after which the temporary folder of a failed build is deleted. */
const ABANDONED_AFTER_MS = 3_600_000;

/**
 * Returns `<root>/<entry>`, which `build` fills if it is missing. It is complete or absent: of two processes that build
 * at the same time, both get the folder of the one that ends first.
 */
export async function cachedFolder(
  root: string,
  entry: string,
  build: (folder: string) => Promise<void>,
): Promise<string> {
  const target = join(root, entry);
  if (existsSync(target)) return target;
  await mkdir(root, { recursive: true });
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
}

async function removeAbandoned(root: string, entry: string): Promise<void> {
  for (const name of await readdir(root)) {
    if (!name.startsWith(`.${entry}-`)) continue;
    const path = join(root, name);
    // The process that builds it may have renamed it by now.
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > ABANDONED_AFTER_MS) await rm(path, { recursive: true, force: true });
  }
}
