import { DomainError } from '../../../../domain/errors.ts';
import type { Locale } from '../../../../domain/locales.ts';
import type { CardEntryOutcome } from '../../../../gateways/port.ts';
import { oneGateway } from '../../one-gateway.ts';
import { createStripeGateway } from '../../../../gateways/stripe/adapter.ts';
import type { Answer, ApiEnvironment, ApiOptions } from '../../api-environment.ts';

/** The servers whose pages are shown. At `stripe`, payers enter cards on the gateway's own page. */
export interface PageServers {
  readonly test: ApiEnvironment;
  readonly live: ApiEnvironment;
  readonly stripe: ApiEnvironment;
  /** The outcome of the next opening of Stripe's page, and whether the merchant of `stripe` has no gateway. */
  readonly entry: { outcome: CardEntryOutcome; isRemoved: boolean };
}

/** Each state of a page by its name, as a function that brings a new record to the state and returns its page. */
export type PageStates = Readonly<
  Record<string, (servers: PageServers, locale: Locale) => Promise<Answer>>
>;

export const NO_ANSWER = { kind: 'unknown', reason: 'asked for' } as const;

export async function openPageServers(
  createApi: (options: ApiOptions) => Promise<ApiEnvironment>,
): Promise<PageServers> {
  const entry: PageServers['entry'] = { outcome: NO_ANSWER, isRemoved: false };
  const stripe = {
    ...createStripeGateway({
      secretKey: 'sk_test_pages',
      accountId: 'acct_pages',
      timeoutMs: 5_000,
      url: 'http://127.0.0.1:2',
    }),
    name: 'fake',
    openCardEntry: async () => entry.outcome,
  };
  const forNewMethods = async () => {
    if (entry.isRemoved) throw new DomainError('operation_not_allowed');
    return stripe;
  };
  return {
    test: await createApi({ trustedProxies: 1 }),
    live: await createApi({ mode: 'live' }),
    stripe: await createApi({
      trustedProxies: 1,
      gateways: { ...oneGateway(stripe), forNewMethods },
    }),
    entry,
  };
}
