import { Stripe } from 'stripe';
import { fetch as undiciFetch } from 'undici';

export interface StripeGatewayOptions {
  /** A secret or restricted key of the account. A `_live_` key moves money. */
  readonly secretKey: string;
  /** The account of the key, `acct_…`. */
  readonly accountId: string;
  /** Time limit of a request in ms. */
  readonly timeoutMs: number;
  /** Another address than Stripe's, for tests. */
  readonly url?: string;
}

/** The version that the types of the pinned package have. */
const API_VERSION = '2026-08-26.dahlia';

/**
 * The SDK's client with exactly one request for each call. The SDK's default client may send a request twice,
 * also without retries. The fetch is that of the package `undici`, because the package replaces the dispatcher
 * of the global one by one that refuses the SDK's Content-Length.
 */
export function createStripeClient(options: StripeGatewayOptions): Stripe {
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
