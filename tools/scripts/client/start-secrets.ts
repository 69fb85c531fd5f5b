import { existsSync } from 'node:fs';
import { findDemoFile } from '../../embedded/demo-file.ts';
import { loadOrMakeSecrets, secretsFile } from '../../embedded/secrets.ts';
import type { EmbeddedSecrets } from '../../embedded/secrets.ts';

/** None before the first start, and none for another database: its rows were written with other secrets. */
export function secretsOfStart(
  dataDir: string,
  databaseUrl: string | undefined,
): Partial<EmbeddedSecrets> {
  const file = secretsFile(dataDir);
  const isOfStart = databaseUrl === undefined || findDemoFile(dataDir)?.databaseUrl === databaseUrl;
  return isOfStart && existsSync(file) ? loadOrMakeSecrets(file) : {};
}
