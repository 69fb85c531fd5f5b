import { checkAmount } from './amounts.ts';
import { attemptCharge } from './charging.ts';
import { newId } from './book.ts';
import type { Stored } from './book.ts';
import { coded, invalid, notInDouble } from './errors.ts';
import type { StripeRefusal } from './errors.ts';
import { flag, integer, metadata, requiredText, text, texts } from './form.ts';
import type { Params } from './form.ts';
import { listing, reading, serving } from './endpoint.ts';
import type { Endpoint } from './endpoint.ts';
import type { Scope } from './scope.ts';
import { paymentIntent } from './shapes.ts';

const CREATE_PARAMS =
  'amount currency customer payment_method payment_method_types metadata description statement_descriptor_suffix receipt_email setup_future_usage'.split(
    ' ',
  );

/** Statuses from which a PaymentIntent can be confirmed or cancelled. */
const OPEN = ['requires_payment_method', 'requires_confirmation', 'requires_action'];

/** The states of https://docs.stripe.com/payments/paymentintents/lifecycle. */
export const paymentIntentEndpoints: Endpoint[] = [
  serving('POST', '/v1/payment_intents', CREATE_PARAMS, create),
  listing('payment_intent', '/v1/payment_intents', ['customer']),
  reading('payment_intent', '/v1/payment_intents', 'intent'),
  {
    method: 'POST',
    path: '/v1/payment_intents/:id/confirm',
    params: ['payment_method', 'off_session', 'return_url', 'setup_future_usage'],
    handle: (scope, { id, params }) => confirm(scope, id, params),
  },
  serving(
    'POST',
    '/v1/payment_intents/:id/cancel',
    ['cancellation_reason'],
    (scope, { id, params }) => cancel(scope, id, text(params, 'cancellation_reason')),
  ),
];

async function create(scope: Scope, { params }: { readonly params: Params }) {
  // Without the parameter Stripe would offer every payment method of the account.
  if (texts(params, 'payment_method_types').join() !== 'card') {
    throw notInDouble('payment methods other than cards');
  }
  const amount = integer(params, 'amount') ?? 0;
  const currency = requiredText(params, 'currency').toLowerCase();
  checkAmount(amount, currency);
  const customerId = text(params, 'customer');
  if (customerId !== null) await scope.book.get('customer', customerId, 'customer');
  const methodId = text(params, 'payment_method');
  if (methodId !== null) await usableMethod(scope, methodId, customerId);
  const created = await scope.book.insert(
    'payment_intent',
    paymentIntent(newId('pi'), scope.now, {
      amount,
      currency,
      customer: customerId,
      payment_method: methodId,
      metadata: metadata(params),
      description: text(params, 'description'),
      statement_descriptor_suffix: text(params, 'statement_descriptor_suffix'),
      receipt_email: text(params, 'receipt_email'),
      setup_future_usage: text(params, 'setup_future_usage'),
      status: methodId === null ? 'requires_payment_method' : 'requires_confirmation',
    }),
  );
  scope.emit('payment_intent.created', created.body);
  return created.body;
}

async function confirm(scope: Scope, id: string, params: Params) {
  const { book } = scope;
  const intent = await book.lock('payment_intent', id, 'intent');
  const status = String(intent.body['status']);
  if (!OPEN.includes(status)) {
    const why =
      status === 'succeeded'
        ? 'it has already succeeded after being previously confirmed'
        : `it has a status of ${status}`;
    throw unexpectedState(intent, `You cannot confirm this PaymentIntent because ${why}.`);
  }
  const methodId = text(params, 'payment_method') ?? intent.body['payment_method'];
  if (typeof methodId !== 'string') {
    throw unexpectedState(
      intent,
      "You cannot confirm this PaymentIntent because it's missing a payment method. You can either update the PaymentIntent with a payment method and then confirm it again, or confirm it again directly with a payment method or ConfirmationToken.",
    );
  }
  const method = await usableMethod(scope, methodId, intent.body['customer'] as string | null);
  const isOffSession = flag(params, 'off_session');
  const returnUrl = text(params, 'return_url');
  const usage = text(params, 'setup_future_usage');
  const ready = usage === null ? intent : await book.update(intent, { setup_future_usage: usage });
  return attemptCharge(scope, { intent: ready, method, isOffSession, returnUrl });
}

async function cancel(scope: Scope, id: string, reason: string | null) {
  const intent = await scope.book.lock('payment_intent', id, 'intent');
  const status = String(intent.body['status']);
  if (!OPEN.includes(status)) {
    throw unexpectedState(
      intent,
      `You cannot cancel this PaymentIntent because it has a status of ${status}. Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action, processing.`,
    );
  }
  const canceled = await scope.book.update(intent, {
    status: 'canceled',
    canceled_at: scope.now,
    cancellation_reason: reason,
    next_action: null,
  });
  scope.emit('payment_intent.canceled', canceled.body);
  return canceled.body;
}

/** Returns the payment method. Refuses a payment method with which this customer may not pay. */
async function usableMethod(scope: Scope, id: string, customerId: string | null): Promise<Stored> {
  const method = await scope.book.get('payment_method', id, 'payment_method');
  const owner = method.body['customer'] as string | null;
  if (method.hidden['isDetached'] === true) {
    throw invalid(
      'The provided PaymentMethod was previously used with a PaymentIntent without Customer attachment, shared with a connected account without Customer attachment, or was detached from a Customer. It may not be used again. To use a PaymentMethod multiple times, you must attach it to a Customer first.',
    );
  }
  if (owner !== null && owner !== customerId) {
    throw invalid(
      `The payment method you provided (${id}) belongs to the Customer ${owner}. Please include the Customer in the \`customer\` parameter on the PaymentIntent.`,
      { param: 'payment_method' },
    );
  }
  return method;
}

function unexpectedState(intent: Stored, message: string): StripeRefusal {
  const code = coded('payment_intent_unexpected_state');
  return invalid(message, { ...code, payment_intent: intent.body });
}
