import { askControl } from '../../../cli/verify/gateway-control.ts';
import { faultControl } from '../../embedded/control.ts';
import type { DemoFile } from '../../../cli/command-line/demo-file.ts';

export type DoubleControl = ReturnType<typeof controlDouble>;

interface ProxyFault {
  readonly fault: string;
  readonly effect: string;
  readonly status: number;
  readonly path: string;
}

/** The control routes of a running Stripe double and of the fault proxy. Throws if `npm start` runs without them. */
export function controlDouble({ stripeDouble, gatewayKey }: DemoFile) {
  if (stripeDouble === undefined) {
    throw new Error(
      'This npm start does not run the Stripe double. Stop it, run npm start -- --gateway stripe-double, ' +
        'and try again.',
    );
  }
  const { url, proxyUrl, accountId } = stripeDouble;
  return {
    accountId,
    /** Calls a control route of the double. `gateways/README.md` describes the routes and their fields. */
    order: (route: string, fields: object) =>
      askControl(`${url}/control/${route}`, gatewayKey, 'POST', fields),
    ...faultControl<ProxyFault>(proxyUrl, gatewayKey),
  };
}
