import { newId } from './book.ts';
import type { Stored } from './book.ts';
import { invalid, notInDouble } from './errors.ts';
import { expectOnly, group, integer, metadata, requiredText, text, texts } from './form.ts';
import type { Params } from './form.ts';
import { serving } from './endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import type { Scope } from './scope.ts';
import { checkoutSession, setupIntent } from './shapes.ts';

const CREATE_PARAMS =
  'mode customer customer_creation customer_email payment_method_types success_url cancel_url metadata setup_intent_data client_reference_id expires_at locale custom_text'.split(
    ' ',
  );

const LEAST_LIFETIME = 30 * 60;
const MOST_LIFETIME = 24 * 3_600;

/** Sessions in mode `setup`. `checkout-pages.ts` has the hosted page. */
export const checkoutEndpoints: Endpoint[] = [
  serving('POST', '/v1/checkout/sessions', CREATE_PARAMS, create),
  serving(
    'GET',
    '/v1/checkout/sessions/:id',
    [],
    async (scope, { id }) => (await currentSession(scope, id)).body,
  ),
  serving('POST', '/v1/checkout/sessions/:id/expire', [], async (scope, { id }) => {
    const session = await currentSession(scope, id);
    if (session.body['status'] !== 'open') {
      throw invalid(
        `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${String(session.body['status'])}\`.`,
      );
    }
    return (await expireSession(scope, session)).body;
  }),
];

async function create(scope: Scope, { params }: { readonly params: Params }) {
  const { book, now } = scope;
  const mode = requiredText(params, 'mode');
  if (mode !== 'setup') throw notInDouble(`the Checkout mode ${mode}`);
  if (texts(params, 'payment_method_types').join() !== 'card') {
    throw notInDouble('payment methods other than cards');
  }
  const customerId = text(params, 'customer');
  if (customerId !== null) await book.get('customer', customerId, 'customer');
  const customerCreation = customerCreationOf(params, customerId);
  const id = newId('cs_test');
  const session = await book.insert(
    'checkout.session',
    checkoutSession(id, now, {
      mode,
      url: `${scope.publicUrl}/checkout/${id}`,
      success_url: requiredText(params, 'success_url'),
      cancel_url: text(params, 'cancel_url'),
      client_reference_id: text(params, 'client_reference_id'),
      customer: customerId,
      customer_creation: customerCreation,
      customer_email: text(params, 'customer_email'),
      metadata: metadata(params),
      locale: text(params, 'locale'),
      custom_text: customText(params),
      expires_at: expiry(params, now),
      ...(await setup(scope, params, customerId)),
    }),
  );
  return session.body;
}

/** Only the text beside the page's button. */
function customText(params: Params) {
  const given = group(params, 'custom_text');
  expectOnly(given, ['submit'], 'custom_text');
  const message = text(group(given, 'submit'), 'message');
  if (message !== null && message.length > 1_200) {
    throw invalid('Invalid string: must be at most 1200 characters', {
      param: 'custom_text[submit][message]',
    });
  }
  return {
    after_submit: null,
    shipping_address: null,
    submit: message === null ? null : { message },
    terms_of_service_acceptance: null,
  };
}

/** `always` creates a customer when the card is saved. Refuses it, and `customer_email`, with `customer`. */
function customerCreationOf(params: Params, customerId: string | null) {
  const creation = text(params, 'customer_creation');
  const both = ['customer_creation', 'customer_email'].find((name) => text(params, name) !== null);
  if (customerId !== null && both !== undefined) {
    throw invalid(`You may only specify one of these parameters: customer, ${both}.`);
  }
  return creation;
}

function expiry(params: Params, now: number): number {
  const wanted = integer(params, 'expires_at') ?? now + MOST_LIFETIME;
  if (wanted < now + LEAST_LIFETIME || wanted > now + MOST_LIFETIME) {
    throw invalid(
      'The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation.',
      { param: 'expires_at' },
    );
  }
  return wanted;
}

async function setup(scope: Scope, params: Params, customerId: string | null) {
  const data = group(params, 'setup_intent_data');
  expectOnly(data, ['metadata'], 'setup_intent_data');
  const intent = await scope.book.insert(
    'setup_intent',
    setupIntent(newId('seti'), scope.now, {
      customer: customerId,
      metadata: metadata(data),
    }),
  );
  return { setup_intent: intent.id };
}

/** Returns the session with its row locked. An open session after its `expires_at` is expired first. */
export async function currentSession(scope: Scope, id: string): Promise<Stored> {
  const session = await scope.book.lock('checkout.session', id, 'session');
  const isOver = Number(session.body['expires_at']) <= scope.now;
  return session.body['status'] === 'open' && isOver ? expireSession(scope, session) : session;
}

async function expireSession(scope: Scope, session: Stored): Promise<Stored> {
  const expired = await scope.book.update(session, { status: 'expired', url: null });
  scope.emit('checkout.session.expired', expired.body);
  return expired;
}
