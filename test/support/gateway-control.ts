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
  method: string,
  path: string,
  body?: unknown,
): Promise<{ charges: BookedCharge[] }> {
  const response = await fetch(gatewayUrl + path, {
    method,
    headers: { authorization: `Bearer ${GATEWAY_KEY}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as { charges: BookedCharge[] };
}
