/** The key of the test worlds' gateway. */
export const GATEWAY_KEY = 'gateway-key-of-the-test-world-00000001';

/** One line of the gateway's own book. */
export interface BookedCharge {
  key: string;
  amountMinor: number;
  outcome: string;
  code: string | null;
  sentCount: number;
}

/** Orders to the gateway, and looks into its book. */
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
