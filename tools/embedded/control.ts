import { askControl } from '../../cli/verify/gateway-control.ts';

const ANSWERS_WITHIN_MS = 3_000;

/** True if a server answers a GET request with success within 3 s. */
export async function answers(url: string, headers: Record<string, string> = {}): Promise<boolean> {
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** The faults of a gateway or of a proxy: they break the requests that they match. */
export function faultControl<Fault>(url: string, key: string) {
  const address = `${url}/control/faults`;
  return {
    addFault: (fault: object) => askControl(address, key, 'POST', fault),
    /** Those since the last removal, each with the number of requests that it has hit. */
    faults: async () =>
      ((await askControl(address, key)) as { faults: (Fault & { hits: number })[] }).faults,
    clearFaults: () => askControl(address, key, 'DELETE'),
  };
}
