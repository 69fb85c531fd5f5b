import { existsSync } from 'node:fs';
import { findDemoFile } from '../../embedded/demo-file.ts';
import { loadOrMakeSecrets, secretsFile } from '../../embedded/secrets.ts';
import type { EmbeddedSecrets } from '../../embedded/secrets.ts';

/**
 * Returns the secrets of the data folder of `npm start`. Returns none before the first start, and none if
 * `databaseUrl` is given and `npm start` last used another database: rows written with the secrets of another
 * database cannot be used by its API and worker.
 */
export function secretsOfStart(
  dataDir: string,
  databaseUrl: string | undefined,
): Partial<EmbeddedSecrets> {
  const file = secretsFile(dataDir);
  const isOfStart = databaseUrl === undefined || findDemoFile(dataDir)?.databaseUrl === databaseUrl;
  return isOfStart && existsSync(file) ? loadOrMakeSecrets(file) : {};
}
