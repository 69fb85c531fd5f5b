import type { Stripe } from 'stripe';
import type { SaveMethodOutcome } from '../port.ts';

/**
 * The data of a Checkout Session in which a payer enters a card. Stripe replaces `{CHECKOUT_SESSION_ID}` in
 * `returnUrl` by the token.
 */
export interface CardEntry {
  /** The id of our checkout session. Stripe's session is valid only for this checkout session. */
  readonly session: string;
  readonly currency: string;
  readonly returnUrl: string;
  readonly cancelUrl: string;
}

/**
 * Opens Stripe's page on which the payer enters a card, for a new customer of the account. Returns the URL of
 * the page. No card number reaches our processes. Throws the SDK's error: a repeat opens another page.
 */
export async function openCardEntry(stripe: Stripe, entry: CardEntry): Promise<{ url: string }> {
  const metadata = { session: entry.session };
  const customer = await stripe.customers.create({ metadata });
  const { url } = await stripe.checkout.sessions.create({
    mode: 'setup',
    customer: customer.id,
    currency: entry.currency.toLowerCase(),
    payment_method_types: ['card'],
    client_reference_id: entry.session,
    success_url: entry.returnUrl,
    cancel_url: entry.cancelUrl,
  });
  if (url === null) throw new Error('the Checkout Session has no page');
  return { url };
}

/**
 * Returns the card that the payer entered in Stripe's session `token`. Refuses a session that belongs to
 * another checkout session or is not complete. A repeat returns the same card. Throws the SDK's error.
 */
export async function readCard(
  stripe: Stripe,
  token: string,
  session: string,
): Promise<SaveMethodOutcome> {
  const found = await stripe.checkout.sessions
    .retrieve(token, { expand: ['setup_intent.payment_method'] })
    .catch((error: unknown) => {
      if ((error as { code?: unknown }).code === 'resource_missing') return null;
      throw error;
    });
  if (found === null) return refused('there is no such session');
  if (found.client_reference_id !== session) return refused('the session is of another checkout');
  const { setup_intent: setup, customer } = found;
  const method = setup !== null && typeof setup === 'object' ? setup.payment_method : null;
  if (found.status !== 'complete' || method === null || typeof method === 'string') {
    return refused('no card was entered');
  }
  const { card } = method;
  if (!card || typeof customer !== 'string') return refused('the payment method is not a card');
  return {
    kind: 'saved',
    card: {
      gatewayMethodId: `${customer}/${method.id}`,
      brand: card.brand,
      country: card.country,
      lastFourDigit: card.last4,
      expiryMonth: card.exp_month,
      expiryYear: card.exp_year,
    },
  };
}

const refused = (reason: string): SaveMethodOutcome => ({
  kind: 'refused',
  code: 'processing_error',
  reason,
});
