import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeForOwner } from './secrets.ts';

/** The content of `demo.json`, which `npm start` writes into its data folder for scripts and people. */
export interface DemoFile {
  readonly apiUrl: string;
  /** `keyId` and `secret`: user and password of the demo merchant's HTTP Basic credentials, in test mode. */
  readonly keyId: string;
  readonly secret: string;
  readonly temporalUiUrl: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly databaseUrl: string;
  readonly gatewayUrl: string;
  /** Bearer token of the sandbox gateway's server-to-server and control endpoints. */
  readonly gatewayKey: string;
}

const path = (dataDir: string): string => join(dataDir, 'demo.json');

/** Writes `demo.json`, readable only by its owner. */
export function writeDemoFile(dataDir: string, content: DemoFile): void {
  writeForOwner(path(dataDir), content);
}

/**
 * Reads `demo.json` of a data folder.
 *
 * @throws Error if the file is missing. The message says to run `npm start` first.
 */
export function readDemoFile(dataDir: string): DemoFile {
  try {
    return JSON.parse(readFileSync(path(dataDir), 'utf8')) as DemoFile;
  } catch (cause) {
    throw new Error(`There is no ${path(dataDir)}. Run npm start first and leave it running.`, {
      cause,
    });
  }
}
