import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeForOwner } from './secrets.ts';

/** What `npm start` leaves in `demo.json` of its data folder for scripts and people. */
export interface DemoFile {
  readonly apiUrl: string;
  /** Basic credentials of the demo merchant: user and password. Test mode. */
  readonly keyId: string;
  readonly secret: string;
  readonly temporalUiUrl: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly databaseUrl: string;
  readonly gatewayUrl: string;
  /** Bearer of the sandbox gateway's server-to-server and control endpoints. */
  readonly gatewayKey: string;
}

const path = (dataDir: string): string => join(dataDir, 'demo.json');

/** Writes `demo.json`, readable by its owner only. */
export function writeDemoFile(dataDir: string, content: DemoFile): void {
  writeForOwner(path(dataDir), content);
}

/**
 * Reads `demo.json` of a data folder.
 *
 * @throws Error saying to run `npm start` first when it is not there.
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
