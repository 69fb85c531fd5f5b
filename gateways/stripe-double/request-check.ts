import type { StripeAnswer } from './scope.ts';

/** Returns stripe-mock's refusal of a request, or null if it accepts it. */
export type RequestCheck = (request: {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly contentType: string | undefined;
  readonly version: string;
  readonly body: string;
}) => Promise<StripeAnswer | null>;

const TIMEOUT_MS = 30_000;

/** A check by stripe-mock: unknown endpoints and parameters, types, enums, required parameters, the version. */
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
