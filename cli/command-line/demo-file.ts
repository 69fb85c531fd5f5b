import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The servers and the demo merchant of `npm start`, for commands that find them in its data folder. */
export interface DemoFile {
  readonly apiUrl: string;
  /** `keyId` and `secret`: user and password of the demo merchant's HTTP Basic credentials, in test mode. */
  readonly keyId: string;
  readonly secret: string;
  readonly checkoutUrl: string;
  readonly temporalUiUrl: string;
  readonly temporalAddress: string;
  readonly temporalNamespace: string;
  readonly databaseUrl: string;
  readonly gatewayUrl: string;
  /** Bearer token of the sandbox gateway and of the control routes of the double and the fault proxy. */
  readonly gatewayKey: string;
  /** Absent without the Stripe double. */
  readonly stripeDouble?: {
    readonly url: string;
    readonly proxyUrl: string;
    readonly accountId: string;
  };
}

export const demoFile = (dataDir: string): string => join(dataDir, 'demo.json');

/** Returns the content of `demo.json`; undefined if it cannot be read, for example before the first start. */
export function findDemoFile(dataDir: string): DemoFile | undefined {
  try {
    return JSON.parse(readFileSync(demoFile(dataDir), 'utf8')) as DemoFile;
  } catch {
    return undefined;
  }
}

/** Throws an error that says to run `npm start` first. */
export function readDemoFile(dataDir: string): DemoFile {
  const found = findDemoFile(dataDir);
  if (found !== undefined) return found;
  throw new Error(`There is no ${demoFile(dataDir)}. Run npm start first and leave it running.`);
}
