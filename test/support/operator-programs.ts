import { join } from 'node:path';
import { loadEmbeddedConfig } from '../../tools/config.ts';
import { onPath } from '../../tools/embedded/find-program.ts';
import { prometheusPrograms } from '../../tools/embedded/prometheus.ts';
import { isCi } from './chromium.ts';

const { cacheDir } = loadEmbeddedConfig();

/** Path of Prometheus' `promtool`. Undefined if it cannot be had; in CI an error. */
export const promtool = () => find('promtool', () => prometheusPrograms(cacheDir, console.log));

async function find(name: string, folder: () => Promise<string>): Promise<string | undefined> {
  const found = await onPath(name);
  if (found !== undefined) return found;
  try {
    return join(await folder(), name);
  } catch (error) {
    if (isCi()) throw error;
    console.log(`tests without ${name} are skipped: ${String(error)}`);
    return undefined;
  }
}
