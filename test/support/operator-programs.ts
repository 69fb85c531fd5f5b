import { join } from 'node:path';
import { loadEmbeddedConfig } from '../../tools/config.ts';
import { onPath } from '../../tools/embedded/find-program.ts';
import { goPrograms } from '../../tools/embedded/go-programs.ts';
import { prometheusPrograms } from '../../tools/embedded/prometheus.ts';
import { isCi } from './chromium.ts';

const { cacheDir } = loadEmbeddedConfig();

/** Path of Prometheus' `promtool`. Undefined if it cannot be had; in CI an error. */
export const promtool = () => find('promtool', () => prometheusPrograms(cacheDir));

const HELM = 'v3.22.0';

/** Path of `helm`. Undefined if it cannot be had; in CI an error. */
export const helm = () =>
  find('helm', () =>
    goPrograms(cacheDir, console.log, {
      entry: `helm-${HELM}`,
      module: 'helm.sh/helm/v3',
      version: HELM,
      programs: ['cmd/helm'],
      duration: 'about 2 minutes',
    }),
  );

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
