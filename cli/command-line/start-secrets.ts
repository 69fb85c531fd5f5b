import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SECRETS } from '../../runtime/config.ts';

export function secretsFile(dataDir: string): string {
  return join(dataDir, 'secrets.json');
}

/** The secrets that `npm start` made; none before its first start. */
export function secretsOfStart(dataDir: string): Partial<Record<(typeof SECRETS)[number], string>> {
  const file = secretsFile(dataDir);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {};
}
