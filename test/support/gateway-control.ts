import { askControl } from '../../tools/embedded/control.ts';
import type { ControlMethod } from '../../tools/embedded/control.ts';

/** The API key of the test gateway. */
export const GATEWAY_KEY = 'gateway-key-of-the-test-environment-01';

/** One charge in the gateway's own records. */
export interface BookedCharge {
  key: string;
  amountMinor: number;
  outcome: string;
  code: string | null;
  sentCount: number;
  /** Sum of the refunds that succeeded. */
  refundedMinor: number;
  /** Our ids, which were sent with the charge. */
  reference: { intentId: string; paymentMethodId: string };
}

/** Calls the control API of the gateway, which sets faults and lists charges. */
export async function controlGateway(
  gatewayUrl: string,
  method: ControlMethod,
  path: string,
  body?: object,
): Promise<{ charges: BookedCharge[] }> {
  const answer = await askControl(gatewayUrl + path, GATEWAY_KEY, method, body);
  return answer as { charges: BookedCharge[] };
}
