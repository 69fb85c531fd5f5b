import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeForOwner } from './secrets.ts';

/** The content of `demo.json`, which `npm start` writes into its data folder for scripts and people. */
export interface DemoFile {
  readonly apiUrl: string;
  /** `keyId` and `secret`: user and password of the demo merchant's HTTP Basic credentials, in test mode. */
  readonly keyId: string;
  readonly secret: string;
  /** A link to subscribe to the demo merchant's product, for a browser. */
  readonly checkoutUrl: string;
  readonly temporalUiUrl: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly databaseUrl: string;
  readonly gatewayUrl: string;
  /**
   * Bearer token of the sandbox gateway's server-to-server and control endpoints, and of the control routes of
   * the Stripe double and of the fault proxy.
   */
  readonly gatewayKey: string;
  /** Absent without the Stripe double. */
  readonly stripeDouble?: {
    readonly url: string;
    /** The address of the fault proxy, through which API and worker call the double. */
    readonly proxyUrl: string;
    readonly accountId: string;
  };
}

const path = (dataDir: string): string => join(dataDir, 'demo.json');

export function writeDemoFile(dataDir: string, content: DemoFile): void {
  writeForOwner(path(dataDir), content);
}

/** Returns the content of `demo.json`; undefined if it cannot be read, for example before the first start. */
export function findDemoFile(dataDir: string): DemoFile | undefined {
  try {
    return JSON.parse(readFileSync(path(dataDir), 'utf8')) as DemoFile;
  } catch {
    return undefined;
  }
}

/**
 * Reads `demo.json` of a data folder.
 *
 * @throws Error if the file cannot be read. The message says to run `npm start` first.
 */
export function readDemoFile(dataDir: string): DemoFile {
  const found = findDemoFile(dataDir);
  if (found !== undefined) return found;
  throw new Error(`There is no ${path(dataDir)}. Run npm start first and leave it running.`);
}
