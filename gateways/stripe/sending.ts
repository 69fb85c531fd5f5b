import { fetch, Response } from 'undici';
import type { RequestInit } from 'undici';
import type { Pace } from './pace.ts';

export interface SendingOptions {
  readonly secretKey: string;
  readonly pace?: Pace | undefined;
  /** Returns the account's present key if it differs from the key `refused`; else null. */
  readonly newerKey?: ((refused: string) => Promise<string | null>) | undefined;
}

/**
 * Returns the `fetch` of one account's client. A request waits for the rate limiter. After a 401, which had no
 * effect, it is sent once more with the newer key if there is one.
 */
export function createSending({ secretKey, pace, newerKey }: SendingOptions) {
  const send = async (url: string, init: RequestInit, key: string): Promise<Response> => {
    await pace?.take(init.method ?? 'GET', init.signal);
    const headers = new Headers(init.headers as HeadersInit);
    headers.set('authorization', `Bearer ${key}`);
    const response = await fetch(url, { ...init, headers: Object.fromEntries(headers) });
    if (response.status === 429) pace?.backOff();
    return response.ok ? response : withoutForeignBody(response);
  };
  return async (url: string, init: RequestInit): Promise<Response> => {
    const response = await send(url, init, secretKey);
    const newer = response.status === 401 ? await newerKey?.(secretKey) : null;
    if (typeof newer !== 'string') return response;
    await response.body?.cancel();
    return send(url, init, newer);
  };
}

/** Removes a body that is not Stripe's, such as a proxy's: the SDK takes any JSON without `error` as a success. */
async function withoutForeignBody(response: Response): Promise<Response> {
  const text = await response.text();
  const isStripes = /^\s*\{\s*"error"\s*:\s*\{/.test(text);
  const { status, headers } = response;
  return new Response(isStripes ? text : null, { status, headers });
}
