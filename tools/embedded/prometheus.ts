import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from './cache.ts';
import { runCommand } from './run-command.ts';

const WITHIN_MS = 120_000;

/** The folder of `prometheus` and `promtool`, of Debian's package, which apt-get downloads once (19 MB) and does not install. */
export async function prometheusPrograms(cacheDir: string): Promise<string> {
  const folder = await cachedFolder(cacheDir, 'prometheus', async (building) => {
    const run = (command: string, ...args: string[]) =>
      runCommand(command, args, { timeoutMs: WITHIN_MS, cwd: building });
    await run('apt-get', '-q', 'download', 'prometheus');
    const [archive = ''] = await readdir(building);
    await run('dpkg-deb', '--extract', archive, '.');
    await rm(join(building, archive));
  });
  return join(folder, 'usr/bin');
}
