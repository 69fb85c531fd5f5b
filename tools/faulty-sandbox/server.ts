import { oneOf, text } from '../../gateways/http-server/fields.ts';
import { RequestRefused } from '../../gateways/http-server/http.ts';
import type { Route } from '../../gateways/http-server/http.ts';
import { createSandboxGateway } from '../../gateways/sandbox/server.ts';
import type { SandboxGateway, SandboxGatewayOptions } from '../../gateways/sandbox/server.ts';
import { controlRoute } from '../fault-proxy/control-key.ts';
import { createFaults, readFault, REFUND_STATUSES } from './faults.ts';

/** The sandbox gateway with control routes that break its answers and decide its refunds. */
export async function createFaultySandbox(options: SandboxGatewayOptions): Promise<SandboxGateway> {
  const closing = new AbortController();
  const gateway = await createSandboxGateway({
    ...options,
    extend: (book) => {
      const faults = createFaults(closing.signal, book);
      return { serve: faults.serve, routes: controlRoutes(faults) };
    },
  });
  return {
    url: gateway.url,
    close: () => {
      closing.abort();
      return gateway.close();
    },
  };
}

function controlRoutes(faults: ReturnType<typeof createFaults>): Route[] {
  return [
    controlRoute('POST', 'faults', (fields) => faults.add(readFault(fields))),
    controlRoute('GET', 'faults', () => ({ faults: faults.list() })),
    controlRoute('DELETE', 'faults', () => faults.clear()),
    controlRoute('POST', 'refunds', async (fields) => {
      const status = oneOf(fields, 'status', REFUND_STATUSES);
      const decided = await faults.decide(text(fields, 'key'), status);
      if (decided.count === 1) return;
      throw new RequestRefused(404, 'refund_not_found', 'There is no refund with this key.');
    }),
  ];
}
