import { Stripe } from 'stripe';
import type { AccountOptions, RequestOptions } from '../processor.ts';
import type { Pace } from './pace.ts';
import { createSending } from './sending.ts';

export interface StripeGatewayOptions
  extends RequestOptions, Partial<Pick<AccountOptions, 'newerKey'>> {
  /** A secret or restricted key of the account. A `_live_` key moves money. */
  readonly secretKey: string;
  readonly accountId: string;
  /** Secrets that verify the account's events; two during a rotation. */
  readonly webhookSecrets?: readonly string[];
  /** The rate limiter of the account's requests in this process. Default: no limit. */
  readonly pace?: Pace;
}

/** Reviewed 2026-11-29: the double compares each request and answer with the specification of this version. */
const API_VERSION = '2026-08-26.dahlia';

/**
 * Creates a client that sends one request for each call; the SDK's own may send two. Uses the `fetch` of `undici`,
 * which replaces the global one's dispatcher and refuses the SDK's Content-Length there.
 */
export function createStripeClient(
  options: Omit<StripeGatewayOptions, 'accountId' | 'webhookSecrets'>,
): Stripe {
  const { secretKey, timeoutMs, url, pace, newerKey } = options;
  const send = createSending({ secretKey, pace, newerKey });
  const address = url === undefined ? null : new URL(url);
  return new Stripe(secretKey, {
    apiVersion: API_VERSION,
    httpClient: Stripe.createFetchHttpClient(send as unknown as typeof fetch),
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
