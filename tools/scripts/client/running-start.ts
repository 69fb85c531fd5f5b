import { readDemoFile } from '../../embedded/demo-file.ts';
import type { DemoFile } from '../../embedded/demo-file.ts';
import { loadEmbeddedConfig } from '../../config.ts';
import { createMerchantClient } from '../../../test/support/merchant-client.ts';
import type {
  MerchantClient,
  MerchantClientOptions,
} from '../../../test/support/merchant-client.ts';

export interface BookedCharge {
  readonly sequence: number;
  readonly key: string;
  readonly outcome: 'succeeded' | 'declined';
  readonly code: string | null;
  readonly amountMinor: number;
  readonly currency: string;
  readonly reference: { readonly intentId: string; readonly subscriptionId: string | null };
}

export interface OrderedFault {
  readonly operation: string;
  readonly fault: string;
  readonly effect: string;
  readonly hits: number;
}

/** A running `npm start`, with access as its demo merchant and as operator of the sandbox gateway. */
export interface RunningStart {
  readonly demo: DemoFile;
  readonly dataDir: string;
  merchant(options?: Omit<MerchantClientOptions, 'apiUrl' | 'keyId' | 'secret'>): MerchantClient;
  declineNext(subscriptionId: string, code: string, count: number): Promise<void>;
  addFault(fault: Readonly<Record<string, unknown>>): Promise<void>;
  faults(): Promise<OrderedFault[]>;
  clearFaults(): Promise<void>;
  /** All charges that the gateway recorded for a subscription, also declined ones, oldest first. */
  book(subscriptionId: string): Promise<BookedCharge[]>;
}

const HEALTH_WITHIN_MS = 3_000;
const CONTROL_WITHIN_MS = 10_000;

/** By default that of this checkout. Throws an error that says what to do if it does not run. */
export async function findRunningStart(
  dataDir: string = loadEmbeddedConfig().dataDir,
): Promise<RunningStart> {
  const demo = readDemoFile(dataDir);
  for (const url of [demo.apiUrl, demo.gatewayUrl]) {
    if (await isHealthy(url)) continue;
    throw new Error(
      `No server answers at ${url}, the address of the last npm start. Run npm start in another ` +
        'terminal, wait until it says that it is running, and try again.',
    );
  }
  const control = (path: string, body?: object) =>
    askGateway(demo, body === undefined ? 'GET' : 'POST', path, body);
  return {
    demo,
    dataDir,
    merchant: (options = {}) => {
      const { apiUrl, keyId, secret } = demo;
      return createMerchantClient({ apiUrl, keyId, secret, ...options });
    },
    declineNext: async (subscriptionId, code, count) => {
      await control('/control/declines', { subscriptionId, code, count });
    },
    addFault: async (fault) => {
      await control('/control/faults', fault);
    },
    faults: async () => ((await control('/control/faults')) as { faults: OrderedFault[] }).faults,
    clearFaults: async () => {
      await askGateway(demo, 'DELETE', '/control/faults');
    },
    book: async (subscriptionId) => {
      const booked: BookedCharge[] = [];
      let after: number | null = 0;
      while (after !== null) {
        const query = `subscriptionId=${subscriptionId}&after=${after}`;
        const page = (await control(`/control/charges?${query}`)) as {
          charges: BookedCharge[];
          next: number | null;
        };
        booked.push(...page.charges);
        after = page.next;
      }
      return booked;
    },
  };
}

export async function isHealthy(url: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(HEALTH_WITHIN_MS);
    const response = await fetch(`${url}/health`, { signal });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

async function askGateway(
  demo: DemoFile,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await fetch(demo.gatewayUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${demo.gatewayKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(CONTROL_WITHIN_MS),
  });
  if (!response.ok) {
    throw new Error(
      `the gateway answered ${path} with ${response.status}: ${await response.text()}`,
    );
  }
  return response.json();
}
