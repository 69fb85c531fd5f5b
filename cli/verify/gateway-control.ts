const WITHIN_MS = 30_000;

export type ControlMethod = 'GET' | 'POST' | 'DELETE';

/** Calls a control route of a gateway or double. Throws the answer if it is no success. */
export async function askControl(
  address: string,
  key: string,
  method: ControlMethod = 'GET',
  body?: object,
): Promise<unknown> {
  const response = await fetch(address, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(WITHIN_MS),
  });
  if (response.ok) return response.json();
  throw new Error(`${method} ${address}: ${response.status} ${await response.text()}`);
}

/** The charges that a gateway recorded, oldest first, page by page. `query` selects some of them. */
export async function* recordedCharges<Charge>(
  url: string,
  key: string,
  query: Readonly<Record<string, string>> = {},
): AsyncGenerator<Charge[]> {
  for (let after: number | null = 0; after !== null;) {
    const selection = new URLSearchParams({ ...query, after: String(after) });
    const page = (await askControl(`${url}/control/charges?${selection}`, key)) as {
      charges: Charge[];
      next: number | null;
    };
    yield page.charges;
    after = page.next;
  }
}
