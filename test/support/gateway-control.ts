import type { SandboxCharge } from '../../gateways/sandbox/charge-book.ts';
import { askControl } from '../../cli/verify/gateway-control.ts';
import type { ControlMethod } from '../../cli/verify/gateway-control.ts';

/** The API key of the test gateway. */
export const GATEWAY_KEY = 'gateway-key-of-the-test-environment-01';

/** Calls the control API of the gateway, which sets faults and lists charges. */
export async function controlGateway(
  gatewayUrl: string,
  method: ControlMethod,
  path: string,
  body?: object,
): Promise<{ charges: SandboxCharge[] }> {
  const answer = await askControl(gatewayUrl + path, GATEWAY_KEY, method, body);
  return answer as { charges: SandboxCharge[] };
}
