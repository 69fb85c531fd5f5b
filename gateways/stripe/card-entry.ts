import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Stripe } from 'stripe';
import type { CardEntryOutcome, CardEntryRequest, SavedCard, SaveMethodOutcome } from '../port.ts';
import { failureOf, unknown } from './outcomes.ts';

const MINUTE_MS = 60_000;
/** Stripe keeps a page open for 30 min to 24 h. Both bounds leave 5 min for differing clocks. */
const LEAST_OPEN_MS = 35 * MINUTE_MS;
const MOST_OPEN_MS = 24 * 60 * MINUTE_MS - 5 * MINUTE_MS;
/** Pause in ms before a repeat while Stripe still executes an earlier request with the same key. */
const PAUSE_MS = 200;
const TEXT_MAX = 1_200;
/** A repeat is sent only if this time, in ms, is left for its answer. */
const ANSWER_WITHIN_MS = 3_000;

/**
 * Opens a Checkout Session in mode `setup`; its id is the `payment_token`. Requests of one minute open one session.
 * It ends at `expiresAt`, but within 35 min to 23 h 55 min.
 */
export async function openCardEntry(
  stripe: Stripe,
  request: CardEntryRequest,
  timeoutMs: number,
  nowAt: number = Date.now(),
): Promise<CardEntryOutcome> {
  const session = sessionOf(request, nowAt);
  try {
    const { url } = await createForFirst(ownersOf(request), (owner) =>
      createOnce(stripe, { ...session, ...owner }, nowAt + timeoutMs),
    );
    if (url !== null) return { kind: 'redirect', url };
    return unknown('the Checkout Session has no page');
  } catch (error) {
    return failureOf(error);
  }
}

type Owner = Pick<
  Stripe.Checkout.SessionCreateParams,
  'customer' | 'customer_creation' | 'customer_email'
>;

/** Returns the possible owners of the card, which are Stripe customers, the preferred one first. */
function ownersOf({ customer: { gatewayMethodId, email } }: CardEntryRequest): Owner[] {
  const known = gatewayMethodId?.split('/')[0];
  const created = { customer_creation: 'always' } as const;
  return [
    ...(known === undefined ? [] : [{ customer: known }]),
    ...(email === undefined ? [] : [{ ...created, customer_email: email }]),
    created,
  ];
}

/** Tries one owner after another: Stripe may have lost the customer, or refuse an e-mail address that we accept. */
async function createForFirst<Made>(
  [owner = {}, ...others]: Owner[],
  create: (owner: Owner) => Promise<Made>,
): Promise<Made> {
  try {
    return await create(owner);
  } catch (error) {
    const isOwnerRefused =
      error instanceof Stripe.errors.StripeInvalidRequestError &&
      ['customer', 'customer_email'].includes(error.param ?? '');
    if (!isOwnerRefused || others.length === 0) throw error;
    return createForFirst(others, create);
  }
}

function sessionOf(
  { session, tries, customer, returnUrl, cancelUrl, expiresAt, text, locale }: CardEntryRequest,
  nowAt: number,
): Stripe.Checkout.SessionCreateParams {
  const minuteAt = nowAt - (nowAt % MINUTE_MS);
  const endsAt = Math.min(Math.max(expiresAt, minuteAt + LEAST_OPEN_MS), minuteAt + MOST_OPEN_MS);
  const separator = returnUrl.includes('?') ? '&' : '?';
  return {
    mode: 'setup',
    payment_method_types: ['card'],
    client_reference_id: session,
    setup_intent_data: { metadata: { session, customerId: customer.id } },
    success_url: `${returnUrl}${separator}payment_token={CHECKOUT_SESSION_ID}`,
    cancel_url: cancelUrl,
    // Stripe's page is not in Arabic, and takes a text of at most 1,200 characters.
    locale: locale === 'ar' ? 'auto' : locale,
    custom_text: { submit: { message: text.slice(0, TEXT_MAX) } },
    expires_at: Math.floor(endsAt / 1_000),
    // Another minute and another card need another page, so both are part of the hash of the parameters.
    metadata: { openedAt: minuteAt, tries },
  };
}

/** The key is a hash of the parameters. While Stripe executes it, repeats the request until 3 s before `untilAt`. */
async function createOnce(
  stripe: Stripe,
  params: Stripe.Checkout.SessionCreateParams,
  untilAt: number,
): Promise<Stripe.Checkout.Session> {
  const hash = createHash('sha256').update(JSON.stringify(params)).digest('base64url');
  for (;;) {
    const timeout = Math.max(1, untilAt - Date.now());
    try {
      return await stripe.checkout.sessions.create(params, {
        idempotencyKey: `entry:${hash}`,
        timeout,
      });
    } catch (error) {
      const isInProgress = error instanceof Stripe.errors.StripeError && error.statusCode === 409;
      const hasTime = untilAt - Date.now() > PAUSE_MS + ANSWER_WITHIN_MS;
      if (!isInProgress || !hasTime) throw error;
      await pause(PAUSE_MS);
    }
  }
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
      // The token comes from the payer, and the rest of the request is fixed. Stripe also refuses a token as malformed.
      if (error instanceof Stripe.errors.StripeInvalidRequestError) return null;
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
    card: cardOf(customer, method.id, card),
    enteredAt: method.created * 1_000,
  };
}

/** Returns a card in our form. Its id is the customer together with the payment method. */
export function cardOf(
  customer: string,
  method: string,
  card: Stripe.PaymentMethod.Card,
): SavedCard {
  return {
    gatewayMethodId: `${customer}/${method}`,
    brand: card.brand,
    country: card.country,
    lastFourDigit: card.last4,
    expiryMonth: card.exp_month,
    expiryYear: card.exp_year,
  };
}

const refused = (reason: string): SaveMethodOutcome => ({
  kind: 'refused',
  code: 'processing_error',
  reason,
});
