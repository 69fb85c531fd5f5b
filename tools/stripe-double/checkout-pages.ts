import { cardError, failAuthentication, succeed } from './charging.ts';
import { declineMessage, hasCheckDigit, NOT_A_TEST_CARD, TEST_CARDS } from './cards.ts';
import type { Decline } from './cards.ts';
import { currentSession } from './checkout-sessions.ts';
import { newId } from './book.ts';
import type { Stored } from './book.ts';
import { coded, invalid } from './errors.ts';
import { cardPage, challengePage, closedPage } from './page-html.ts';
import type { Scope } from './scope.ts';
import { customer, paymentMethod } from './shapes.ts';
import type { EnteredCard } from './shapes.ts';

export type PageAnswer = { readonly html: string } | { readonly redirect: string };

export async function showCheckout(scope: Scope, id: string): Promise<PageAnswer> {
  const session = await currentSession(scope, id);
  return { html: session.body['status'] === 'open' ? cardPage(session) : closedPage(session) };
}

/** Shows the form again for a decline, the challenge for 3D Secure, else redirects. A session completes once. */
export async function submitCard(
  scope: Scope,
  id: string,
  form: URLSearchParams,
): Promise<PageAnswer> {
  const session = await currentSession(scope, id);
  if (session.body['status'] !== 'open') return { html: closedPage(session) };
  const entered = readCard(form, scope.now);
  if (!('card' in entered)) return { html: cardPage(session, declineMessage(entered)) };
  const method = await scope.book.insert(
    'payment_method',
    paymentMethod(newId('pm'), scope.now, entered),
    { number: entered.card.number },
  );
  return setUp(scope, session, method, entered);
}

export async function showChallenge(scope: Scope, intentId: string): Promise<PageAnswer> {
  const intent = await scope.book.find(intentId);
  if (intent?.body['status'] !== 'requires_action') throw notWaiting(intentId);
  return { html: challengePage(intentId) };
}

export async function answerChallenge(
  scope: Scope,
  intentId: string,
  isPassed: boolean,
): Promise<PageAnswer> {
  const { book } = scope;
  const [opened] = await book.where('checkout.session', 'setup_intent', intentId);
  // All code locks a session before its intent, to avoid deadlocks.
  const session = opened === undefined ? null : await currentSession(scope, opened.id);
  const intent = await book.lock(session === null ? 'payment_intent' : 'setup_intent', intentId);
  if (intent.body['status'] !== 'requires_action') return { redirect: lateReturn(intent) };
  const method = await book.lock('payment_method', String(intent.body['payment_method']));
  if (session !== null) {
    if (isPassed) return completeSetup(scope, session, intent, method, true);
    return failSetup(scope, session, intent, setupFailure(method));
  }
  if (!isPassed) {
    await failAuthentication(scope, { intent, method });
    return { redirect: returnUrl(intent, 'failed') };
  }
  const authenticated = await book.update(method, {}, { isAuthenticated: true });
  await succeed(scope, { intent, method: authenticated });
  return { redirect: returnUrl(intent, 'succeeded') };
}

function setupFailure(method: Stored) {
  return {
    type: 'card_error',
    ...coded('setup_intent_authentication_failure'),
    message:
      'The latest attempt to set up the payment method has failed because authentication failed.',
    payment_method: method.body,
  };
}

async function setUp(
  scope: Scope,
  session: Stored,
  method: Stored,
  { card }: EnteredCard,
): Promise<PageAnswer> {
  const { book } = scope;
  const intent = await book.lock('setup_intent', String(session.body['setup_intent']));
  if (card.decline !== null) {
    const error = cardError(card.decline, { payment_method: method.body });
    return failSetup(scope, session, intent, error);
  }
  if (card.authentication === 'never') return completeSetup(scope, session, intent, method, false);
  const url = `${scope.publicUrl}/challenge/${intent.id}`;
  await book.update(intent, {
    status: 'requires_action',
    payment_method: method.id,
    next_action: {
      type: 'redirect_to_url',
      redirect_to_url: { url, return_url: session.body['success_url'] },
    },
  });
  return { redirect: url };
}

async function failSetup(
  { book }: Scope,
  session: Stored,
  intent: Stored,
  error: Readonly<Record<string, unknown>>,
): Promise<PageAnswer> {
  await book.update(intent, {
    status: 'requires_payment_method',
    payment_method: null,
    last_setup_error: error,
    next_action: null,
  });
  return { html: cardPage(session, String(error['message'])) };
}

async function completeSetup(
  scope: Scope,
  session: Stored,
  intent: Stored,
  method: Stored,
  isAuthenticated: boolean,
): Promise<PageAnswer> {
  const { book } = scope;
  const owner = { customer: await customerOf(scope, session, method) };
  await book.update(method, owner, { isAuthenticated });
  await book.update(intent, {
    ...owner,
    status: 'succeeded',
    payment_method: method.id,
    last_setup_error: null,
    next_action: null,
  });
  const done = await book.update(session, { ...owner, status: 'complete', url: null });
  scope.emit('checkout.session.completed', done.body);
  const target = String(session.body['success_url']);
  return { redirect: target.replaceAll('{CHECKOUT_SESSION_ID}', session.id) };
}

/** Returns the session's customer. Creates a missing one if `customer_creation` is `always`, else returns null. */
async function customerOf(scope: Scope, session: Stored, method: Stored): Promise<string | null> {
  const { customer: known, customer_creation: creation, customer_email: email } = session.body;
  if (typeof known === 'string') return known;
  if (creation !== 'always') return null;
  const { name } = method.body['billing_details'] as { name: string | null };
  const created = customer(newId('cus'), scope.now, { email, name });
  return (await scope.book.insert('customer', created)).id;
}

/** Returns the URL for a payer who answers after the payment was decided or cancelled. The answer has no effect. */
function lateReturn(intent: Stored): string {
  const target = intent.hidden['returnUrl'];
  if (typeof target !== 'string') throw notWaiting(intent.id);
  const isPaid = intent.body['status'] === 'succeeded';
  return withStatus(target, intent, isPaid ? 'succeeded' : 'failed');
}

/** Returns the `return_url` of the confirm request, with the parameters that Stripe adds. */
function returnUrl(intent: Stored, status: string): string {
  const next = intent.body['next_action'] as { redirect_to_url?: { return_url: string } } | null;
  const target = next?.redirect_to_url?.return_url;
  if (target === undefined) throw invalid('This PaymentIntent has no return_url.');
  return withStatus(target, intent, status);
}

function withStatus(target: string, intent: Stored, status: string): string {
  const url = new URL(target);
  url.searchParams.set('payment_intent', intent.id);
  url.searchParams.set('redirect_status', status);
  return url.href;
}

function notWaiting(intentId: string) {
  return invalid(`${intentId} does not wait for 3D Secure.`);
}

const EXPIRED: Decline = { code: 'expired_card', declineCode: null, adviceCode: null };
const WRONG_NUMBER: Decline = { ...EXPIRED, code: 'incorrect_number' };
const WRONG_CVC: Decline = { ...EXPIRED, code: 'incorrect_cvc' };

function readCard(form: URLSearchParams, now: number): EnteredCard | Decline {
  const number = (form.get('number') ?? '').replaceAll(/[\s-]/g, '');
  if (!hasCheckDigit(number)) return WRONG_NUMBER;
  const card = TEST_CARDS.find((each) => each.number === number);
  if (card === undefined) return NOT_A_TEST_CARD;
  const match = /^(0[1-9]|1[0-2])\s*\/\s*(\d\d)$/.exec(form.get('expiry') ?? '');
  if (match === null) return EXPIRED;
  const [expiryMonth, expiryYear] = [Number(match[1]), 2_000 + Number(match[2])];
  // A card is valid until the end of its expiry month.
  if (Date.UTC(expiryYear, expiryMonth) / 1_000 <= now) return EXPIRED;
  if (!/^\d{3,4}$/.test(form.get('cvc') ?? '')) return WRONG_CVC;
  return { card, expiryMonth, expiryYear, name: form.get('name') };
}
