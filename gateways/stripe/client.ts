import { Stripe } from 'stripe';
import { fetch as undiciFetch } from 'undici';

export interface StripeGatewayOptions {
  /** A secret or restricted key of the account. A `_live_` key moves money. */
  readonly secretKey: string;
  /** The account of the key, `acct_…`. */
  readonly accountId: string;
  /** Time limit of a request in ms. */
  readonly timeoutMs: number;
  /** A test's address instead of Stripe's. */
  readonly url?: string;
}

/** The API version for which the pinned package has types. */
const API_VERSION = '2026-08-26.dahlia';

/**
 * Creates a client that sends exactly one request for each call. The SDK's default HTTP client may send a
 * request twice, even without retries. The global `fetch` fails here: the package `undici` replaces its
 * dispatcher, and the new dispatcher refuses the SDK's Content-Length. The client therefore uses the `fetch`
 * of `undici`.
 */
export function createStripeClient(options: Omit<StripeGatewayOptions, 'accountId'>): Stripe {
  const { secretKey, timeoutMs, url } = options;
  const address = url === undefined ? null : new URL(url);
  return new Stripe(secretKey, {
    apiVersion: API_VERSION,
    httpClient: Stripe.createFetchHttpClient(undiciFetch as unknown as typeof fetch),
    maxNetworkRetries: 0,
    timeout: timeoutMs,
    telemetry: false,
    ...(address && {
      host: address.hostname,
      port: Number(address.port),
      protocol: address.protocol === 'https:' ? ('https' as const) : ('http' as const),
    }),
  });
}
