import { checkAmount } from './amounts.ts';
import { newId } from './book.ts';
import type { Stored } from './book.ts';
import { invalid, notInDouble } from './errors.ts';
import { expectOnly, group, integer, list, metadata, requiredText, text, texts } from './form.ts';
import type { Params } from './form.ts';
import type { Endpoint } from './endpoint.ts';
import { cancelIntent } from './payment-intents.ts';
import type { Scope } from './scope.ts';
import { checkoutSession } from './session-shape.ts';
import { setupIntent } from './shapes.ts';

const CREATE_PARAMS = [
  'mode',
  'customer',
  'customer_creation',
  'customer_email',
  'currency',
  'payment_method_types',
  'success_url',
  'cancel_url',
  'metadata',
  'setup_intent_data',
  'payment_intent_data',
  'client_reference_id',
  'expires_at',
  'locale',
  'line_items',
  'submit_type',
  'expand',
];

const LEAST_LIFETIME = 30 * 60;
const MOST_LIFETIME = 24 * 3_600;

/** Modes `setup` and `payment`. `checkout-pages.ts` has the hosted page. */
export const checkoutEndpoints: Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/checkout/sessions',
    params: CREATE_PARAMS,
    handle: async (scope, { params }) => ({ status: 200, body: await create(scope, params) }),
  },
  {
    method: 'GET',
    path: '/v1/checkout/sessions',
    params: [
      'created',
      'customer',
      'ending_before',
      'expand',
      'limit',
      'payment_intent',
      'starting_after',
      'status',
    ],
    handle: async ({ book }, { params }) => ({
      status: 200,
      body: await book.list(
        {
          kind: 'checkout.session',
          url: '/v1/checkout/sessions',
          filters: ['customer', 'payment_intent', 'status'],
        },
        params,
      ),
    }),
  },
  {
    method: 'GET',
    path: '/v1/checkout/sessions/:id',
    params: ['expand'],
    handle: async (scope, { id }) => ({
      status: 200,
      body: (await currentSession(scope, id)).body,
    }),
  },
  {
    method: 'POST',
    path: '/v1/checkout/sessions/:id/expire',
    params: ['expand'],
    handle: async (scope, { id }) => {
      const session = await currentSession(scope, id);
      if (session.body['status'] !== 'open') {
        throw invalid(
          `Only Checkout Sessions with a status in ["open"] can be expired. This Checkout Session has a status of \`${String(session.body['status'])}\`.`,
        );
      }
      return { status: 200, body: (await expireSession(scope, session)).body };
    },
  },
];

async function create(scope: Scope, params: Params) {
  const { book, now } = scope;
  const mode = requiredText(params, 'mode');
  if (mode !== 'setup' && mode !== 'payment') throw notInDouble(`the Checkout mode ${mode}`);
  const customerId = text(params, 'customer');
  if (customerId !== null) await book.get('customer', customerId, 'customer');
  const customerCreation = customerCreationOf(params, mode, customerId);
  const types = texts(params, 'payment_method_types');
  if (mode === 'setup' && types.length === 0) requiredText(params, 'currency');
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
      currency: text(params, 'currency'),
      locale: text(params, 'locale'),
      submit_type: text(params, 'submit_type'),
      metadata: metadata(params),
      expires_at: expiry(params, now),
      payment_method_types: types.length === 0 ? ['card'] : types,
      ...(mode === 'setup' ? await setup(scope, params, customerId) : total(params)),
    }),
    mode === 'payment' ? { intentData: intentData(params) } : {},
  );
  return session.body;
}

/** `always` creates a customer when the card is saved. Refuses it, and `customer_email`, with `customer`. */
function customerCreationOf(params: Params, mode: string, customerId: string | null) {
  const creation = text(params, 'customer_creation');
  const both = ['customer_creation', 'customer_email'].find((name) => text(params, name) !== null);
  if (customerId !== null && both !== undefined) {
    throw invalid(`You may only specify one of these parameters: customer, ${both}.`);
  }
  if (creation !== null && mode === 'payment') throw notInDouble('customer_creation in a payment');
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
  expectOnly(data, ['metadata', 'description'], 'setup_intent_data');
  const intent = await scope.book.insert(
    'setup_intent',
    setupIntent(newId('seti'), scope.now, {
      customer: customerId,
      metadata: metadata(data),
      description: text(data, 'description'),
    }),
  );
  return { setup_intent: intent.id };
}

/** Returns the amount of a session in mode `payment`. In the double such a session has exactly one line. */
function total(params: Params) {
  const lines = list(params, 'line_items');
  const [line] = lines;
  if (lines.length !== 1 || typeof line !== 'object' || Array.isArray(line)) {
    throw notInDouble('a Checkout Session with other than one line');
  }
  expectOnly(line, ['price_data', 'quantity'], 'line_items');
  const price = group(line, 'price_data');
  expectOnly(price, ['currency', 'unit_amount', 'product_data'], 'price_data');
  const currency = requiredText(price, 'currency').toLowerCase();
  const amount = (integer(price, 'unit_amount') ?? 0) * (integer(line, 'quantity') ?? 1);
  checkAmount(amount, currency);
  return { currency, amount_total: amount, amount_subtotal: amount, payment_status: 'unpaid' };
}

function intentData(params: Params) {
  const data = group(params, 'payment_intent_data');
  const allowed = ['metadata', 'description', 'setup_future_usage', 'statement_descriptor_suffix'];
  expectOnly(data, allowed, 'payment_intent_data');
  return {
    metadata: metadata(data),
    description: text(data, 'description'),
    setup_future_usage: text(data, 'setup_future_usage'),
    statement_descriptor_suffix: text(data, 'statement_descriptor_suffix'),
  };
}

/** Returns the session with its row locked. An open session after its `expires_at` is expired first. */
export async function currentSession(scope: Scope, id: string): Promise<Stored> {
  const session = await scope.book.lock('checkout.session', id, 'session');
  const isOver = Number(session.body['expires_at']) <= scope.now;
  return session.body['status'] === 'open' && isOver ? expireSession(scope, session) : session;
}

async function expireSession(scope: Scope, session: Stored): Promise<Stored> {
  const { book } = scope;
  const intentId = session.body['payment_intent'];
  if (typeof intentId === 'string') {
    const intent = await book.lock('payment_intent', intentId);
    await cancelIntent(scope, intent, 'abandoned');
  }
  const expired = await book.update(session, { status: 'expired', url: null });
  scope.emit('checkout.session.expired', expired.body);
  return expired;
}
