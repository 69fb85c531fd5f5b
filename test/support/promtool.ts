import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../../tools/embedded/cache.ts';
import { runCommand } from '../../tools/embedded/commands.ts';
import { onPath } from '../../tools/embedded/find-program.ts';
import { loadEmbeddedConfig } from '../../tools/config.ts';
import { isCi } from './chromium.ts';

const WITHIN_MS = 120_000;

/**
 * Returns the path of Prometheus' `promtool`: from PATH, else from Debian's package `prometheus` (19 MB), which apt-get
 * downloads once without an installation. Undefined if both are missing; in CI an error.
 */
export async function promtool(): Promise<string | undefined> {
  const found = await onPath('promtool');
  if (found !== undefined) return found;
  const unpack = async (folder: string) => {
    const run = (command: string, args: readonly string[]) =>
      runCommand(command, args, { timeoutMs: WITHIN_MS, cwd: folder });
    await run('apt-get', ['-q', 'download', 'prometheus']);
    const [archive = ''] = await readdir(folder);
    await run('dpkg-deb', ['--extract', archive, '.']);
    await rm(join(folder, archive));
  };
  try {
    const folder = await cachedFolder(
      loadEmbeddedConfig().cacheDir,
      'promtool',
      console.log,
      unpack,
    );
    return join(folder, 'usr/bin/promtool');
  } catch (error) {
    if (isCi()) throw error;
    console.log(`no promtool, so the alerts are not evaluated: ${String(error)}`);
    return undefined;
  }
}
