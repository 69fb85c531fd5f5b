import type { StripeAnswer } from './scope.ts';

/** Returns stripe-mock's refusal of a request; null if stripe-mock accepts the request. */
export type RequestCheck = (request: {
  readonly method: string;
  readonly target: string;
  readonly contentType: string | undefined;
  readonly version: string;
  readonly body: string;
}) => Promise<StripeAnswer | null>;

const TIMEOUT_MS = 30_000;

/** Refuses unknown endpoints, parameters and versions, wrong types and missing parameters. */
export function createRequestCheck(stripeMockUrl: string): RequestCheck {
  return async ({ method, target, contentType, version, body }) => {
    const response = await fetch(`${stripeMockUrl}${target}`, {
      method,
      headers: {
        authorization: 'Bearer sk_test_double',
        'stripe-version': version,
        ...(contentType === undefined ? {} : { 'content-type': contentType }),
      },
      ...(method === 'GET' || body === '' ? {} : { body }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (response.ok) {
      await response.body?.cancel();
      return null;
    }
    return { status: response.status, body: (await response.json()) as StripeAnswer['body'] };
  };
}
