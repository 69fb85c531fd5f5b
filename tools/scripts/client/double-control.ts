import { askControl, recordedCharges } from '../../embedded/control.ts';
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

/** @throws Error if `npm start` runs without the Stripe double. */
export function controlDouble({ stripeDouble, gatewayKey }: DemoFile): DoubleControl {
  if (stripeDouble === undefined) {
    throw new Error(
      'This npm start does not run the Stripe double. Stop it, run npm start -- --gateway stripe-double, ' +
        'and try again.',
    );
  }
  const { url, proxyUrl, accountId } = stripeDouble;
  const faults = `${proxyUrl}/control/faults`;
  return {
    accountId,
    order: (route, fields) => askControl(`${url}/control/${route}`, gatewayKey, 'POST', fields),
    charges: () => recordedCharges<ListedCharge>(url, gatewayKey, { accountId }),
    addFault: async (fault) => {
      await askControl(faults, gatewayKey, 'POST', fault);
    },
    faults: async () =>
      (
        (await askControl(faults, gatewayKey)) as {
          faults: Awaited<ReturnType<DoubleControl['faults']>>;
        }
      ).faults,
    removeFaults: async () => {
      await askControl(faults, gatewayKey, 'DELETE');
    },
  };
}
