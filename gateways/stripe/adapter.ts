import type { PaymentGateway } from '../port.ts';
import type { AccountOptions } from '../processor.ts';
import { amountProblem } from './amounts.ts';
import { openCardEntry, readCard } from './card-entry.ts';
import { charge, lookup, prepare, withdraw } from './charges.ts';
import { createStripeClient } from './client.ts';
import type { StripeGatewayOptions } from './client.ts';
import { readEvents } from './events.ts';
import { lookupDispute, lookupFraudWarning, lookupMethod, newestCharge } from './lookups.ts';
import { failureOf, unknown } from './outcomes.ts';
import { createPace } from './pace.ts';
import { lookupRefund, refund } from './refunds.ts';

/** The account's rate limit also applies across changes of its key. */
export function openStripeAccount({ mode, onRateLimited, ...account }: AccountOptions) {
  const pace = createPace(mode, onRateLimited);
  return (secretKey: string, webhookSecrets: readonly string[]): PaymentGateway =>
    createStripeGateway({ ...account, secretKey, webhookSecrets, pace });
}

/**
 * Stripe, for one account. Each attempt has its own PaymentIntent, which `prepare` creates, `charge` confirms and
 * `withdraw` cancels. It is confirmed at most once, because a decline removes its payment method.
 */
export function createStripeGateway(options: StripeGatewayOptions): PaymentGateway {
  const stripe = createStripeClient(options);
  return {
    name: `stripe:${options.accountId}`,
    capabilities: {
      payerPresent: true,
      mode: /^(sk|rk)_live_/.test(options.secretKey) ? 'live' : 'test',
    },
    tokeniserUrl: null,
    testCards: [],
    company: 'Stripe',
    openCardEntry: (request) => openCardEntry(stripe, request, options.timeoutMs),
    amountProblem,
    prepare: (request) => prepare(stripe, request),
    charge: (request) => charge(stripe, request),
    lookup: (ref) => lookup(stripe, ref),
    withdraw: (ref) => withdraw(stripe, ref),
    refund: (request) => refund(stripe, request),
    lookupRefund: (ref) => lookupRefund(stripe, ref),
    saveMethod: ({ token, session }) =>
      readCard(stripe, token, session).catch((error: unknown) => unknown(failureOf(error).reason)),
    readEvents: (rawBody, headers) =>
      readEvents(options.webhookSecrets ?? [], rawBody, headers['stripe-signature']),
    lookupDispute: (gatewayDisputeId) => lookupDispute(stripe, gatewayDisputeId),
    lookupFraudWarning: (gatewayWarningId) => lookupFraudWarning(stripe, gatewayWarningId),
    newestCharge: (merchantId, sinceAt) => newestCharge(stripe, merchantId, sinceAt),
    lookupMethod: (gatewayMethodId) => lookupMethod(stripe, gatewayMethodId),
  };
}
