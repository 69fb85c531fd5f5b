import type { DemoFile } from '../../embedded/demo-file.ts';
import type { ListedCharge } from '../../stripe-double/charge-list.ts';

/** The control routes of a running Stripe double and of the fault proxy in front of the double. */
export interface DoubleControl {
  readonly accountId: string;
  /** Calls a control route of the double. `gateways/README.md` describes the routes and their fields. */
  order(route: string, fields: object): Promise<unknown>;
  /** All charges of the demo merchant's account in the order in which they were made, page by page. */
  charges(): AsyncGenerator<ListedCharge[]>;
  addFault(fault: object): Promise<void>;
  /** The faults of the proxy since the last removal, with the number of requests that each has hit. */
  faults(): Promise<
    { fault: string; effect: string; hits: number; status: number; path: string }[]
  >;
  removeFaults(): Promise<void>;
}

const WITHIN_MS = 30_000;

/** @throws Error if `npm start` runs without the Stripe double. */
export function controlDouble({ stripeDouble, gatewayKey }: DemoFile): DoubleControl {
  if (stripeDouble === undefined) {
    throw new Error(
      'This npm start does not run the Stripe double. Stop it, run npm start -- --gateway stripe-double, ' +
        'and try again.',
    );
  }
  const { url, proxyUrl, accountId } = stripeDouble;
  const ask = async (method: string, address: string, body?: object): Promise<unknown> => {
    const response = await fetch(address, {
      method,
      headers: {
        authorization: `Bearer ${gatewayKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    if (response.ok) return response.json();
    throw new Error(`${method} ${address}: ${response.status} ${await response.text()}`);
  };
  const faults = `${proxyUrl}/control/faults`;
  return {
    accountId,
    order: (route, fields) => ask('POST', `${url}/control/${route}`, fields),
    charges: async function* () {
      for (let after: number | null = 0; after !== null;) {
        const query = `accountId=${accountId}&after=${after}`;
        const page = (await ask('GET', `${url}/control/charges?${query}`)) as {
          charges: ListedCharge[];
          next: number | null;
        };
        yield page.charges;
        after = page.next;
      }
    },
    addFault: async (fault) => {
      await ask('POST', faults, fault);
    },
    faults: async () =>
      ((await ask('GET', faults)) as { faults: Awaited<ReturnType<DoubleControl['faults']>> })
        .faults,
    removeFaults: async () => {
      await ask('DELETE', faults);
    },
  };
}
