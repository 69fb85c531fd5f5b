import { createStripeGateway } from '../../gateways/stripe/adapter.ts';
import { readBook } from '../../gateways/stripe/book.ts';
import { createStripeClient } from '../../gateways/stripe/client.ts';
import type { GatewayHarness } from './gateway-harness.ts';

/** Stripe's names of its test cards, which a request may use instead of a card page. */
const TEST_CARDS: Readonly<Record<string, string>> = {
  '4242424242424242': 'pm_card_visa',
  '4000000000000341': 'pm_card_chargeCustomerFail',
  '4000002760003184': 'pm_card_authenticationRequired',
};

const TIMEOUT_MS = 30_000;

/**
 * Starts the contract tests' harness with Stripe's adapter against Stripe itself, in test mode. No money moves. The
 * harness saves cards by requests, because no payer enters a card on Stripe's page. `url` replaces Stripe's address.
 *
 * @throws Error for a key that is no test key; Stripe's error for a key that Stripe refuses.
 */
export async function startTestModeHarness(
  secretKey: string,
  url?: string,
): Promise<GatewayHarness> {
  if (!/^(sk|rk)_test_/.test(secretKey)) throw new Error('STRIPE_TEST_KEY is not a test key');
  const stripe = createStripeClient({ secretKey, timeoutMs: TIMEOUT_MS, url });
  const account = await stripe.accounts.retrieveCurrent();
  const startedAt = Date.now();
  const options = { secretKey, accountId: account.id, url };
  const gateway = createStripeGateway({ ...options, timeoutMs: TIMEOUT_MS });
  const impatient = createStripeGateway({ ...options, timeoutMs: 750 });
  return {
    gateway,
    chargeAndGiveUp: (request) => impatient.charge(request),
    rereadableTokens: null,
    payingCard: '4242424242424242',
    decliningCards: [
      { number: '4000000000000341', code: 'card_declined' },
      { number: '4000002760003184', code: 'authentication_required' },
    ],
    issueToken: () => Promise.reject(new Error('nobody can enter a card on Stripe’s page')),
    saveCard: async (number) => {
      const card = TEST_CARDS[number] ?? '';
      const customer = await stripe.customers.create();
      if (card !== 'pm_card_visa') {
        // A SetupIntent with pm_card_authenticationRequired would wait for 3D Secure.
        const attached = await stripe.paymentMethods.attach(card, { customer: customer.id });
        return `${customer.id}/${attached.id}`;
      }
      const setup = await stripe.setupIntents.create({
        customer: customer.id,
        payment_method: card,
        payment_method_types: ['card'],
        usage: 'off_session',
        confirm: true,
      });
      const { status, payment_method: method } = setup;
      if (status !== 'succeeded' || typeof method !== 'string') {
        throw new Error(`the SetupIntent is ${status}`);
      }
      return `${customer.id}/${method}`;
    },
    faults: null,
    refunds: null,
    book: async (subscriptionId) => {
      const found = [];
      const pages = readBook(secretKey, startedAt, { timeoutMs: TIMEOUT_MS, url });
      for await (const { charges } of pages) {
        for (const charge of charges)
          if (charge.subscriptionId === subscriptionId) found.push(charge);
      }
      return found.map(({ key, outcome, amountMinor }) => ({
        key,
        outcome,
        amountMinor,
        sentCount: 1,
      }));
    },
    close: async () => undefined,
  };
}
