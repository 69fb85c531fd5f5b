import { answers, faultControl } from '../../embedded/control.ts';
import { askControl, recordedCharges } from '../../../cli/verify/gateway-control.ts';
import { readDemoFile } from '../../../cli/command-line/demo-file.ts';
import { loadEmbeddedConfig } from '../../config.ts';
import type { SandboxCharge } from '../../../gateways/sandbox/charge-book.ts';

export interface OrderedFault {
  readonly operation: string;
  readonly fault: string;
  readonly effect: string;
}

export type RunningStart = Awaited<ReturnType<typeof findRunningStart>>;

/**
 * A running `npm start`, by default that of this checkout, with access as its demo merchant and as operator of the
 * sandbox gateway. Throws an error that says what to do if it does not run.
 */
export async function findRunningStart(dataDir: string = loadEmbeddedConfig().dataDir) {
  const demo = readDemoFile(dataDir);
  for (const url of [demo.apiUrl, demo.gatewayUrl]) {
    if (await answers(`${url}/health`)) continue;
    throw new Error(
      `No server answers at ${url}, the address of the last npm start. Run npm start in another ` +
        'terminal, wait until it says that it is running, and try again.',
    );
  }
  const { gatewayUrl, gatewayKey } = demo;
  return {
    demo,
    dataDir,
    declineNext: async (subscriptionId: string, code: string, count: number) => {
      const order = { subscriptionId, code, count };
      await askControl(`${gatewayUrl}/control/declines`, gatewayKey, 'POST', order);
    },
    ...faultControl<OrderedFault>(gatewayUrl, gatewayKey),
    /** All charges that the gateway recorded for a subscription, also declined ones, oldest first. */
    book: async (subscriptionId: string) => {
      const booked: SandboxCharge[] = [];
      const pages = recordedCharges<SandboxCharge>(gatewayUrl, gatewayKey, { subscriptionId });
      for await (const page of pages) booked.push(...page);
      return booked;
    },
  };
}
