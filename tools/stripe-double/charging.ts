import { AUTHENTICATION_REQUIRED, declineMessage, TEST_CARDS } from './cards.ts';
import type { Decline } from './cards.ts';
import { newId } from './book.ts';
import type { Stored } from './book.ts';
import { coded } from './errors.ts';
import type { StripeObject } from './errors.ts';
import type { Scope, StripeAnswer } from './scope.ts';
import { takeForcedOutcome } from './scope.ts';
import { charge as newCharge } from './shapes.ts';

export interface Attempt {
  readonly intent: Stored;
  readonly method: Stored;
  readonly isOffSession: boolean;
  readonly returnUrl: string | null;
}

/** Needs a locked intent that may be charged. A declined card is answered 402. */
export async function attemptCharge(scope: Scope, attempt: Attempt): Promise<StripeAnswer> {
  const { method, isOffSession } = attempt;
  const forced = await takeForcedOutcome(scope, attempt.intent, method.id);
  const card = TEST_CARDS.find(({ number }) => number === method.hidden['number']);
  const why = forced?.kind === 'decline' ? forced : (card?.decline ?? card?.chargeDecline ?? null);
  if (why !== null) return declineCharge(scope, attempt, why);
  if (forced?.kind === 'processing') return startProcessing(scope, attempt);
  const needsAuthentication =
    forced?.kind === 'authentication' ||
    card?.authentication === 'always' ||
    (card?.authentication === 'setup' && method.hidden['isAuthenticated'] !== true);
  if (needsAuthentication && isOffSession) {
    return declineCharge(scope, attempt, AUTHENTICATION_REQUIRED);
  }
  if (needsAuthentication) return requireAction(scope, attempt);
  return succeed(scope, attempt);
}

/** Records the success of a new charge, or of `pending`, a charge that is pending. */
export async function succeed(
  scope: Scope,
  { intent, method }: Pick<Attempt, 'intent' | 'method'>,
  pending?: Stored,
): Promise<StripeAnswer> {
  const { book } = scope;
  const stored = pending ?? (await insertCharge(scope, intent, method));
  await book.update(stored, {
    status: 'succeeded',
    paid: true,
    captured: true,
    amount_captured: intent.body['amount'],
    outcome: outcomeOf(null),
  });
  const paid = await book.update(intent, {
    status: 'succeeded',
    amount_received: intent.body['amount'],
    latest_charge: stored.id,
    payment_method: method.id,
    last_payment_error: null,
    next_action: null,
    processing: null,
  });
  const isKept = intent.body['setup_future_usage'] !== null && intent.body['customer'] !== null;
  if (isKept && method.body['customer'] === null) {
    await book.update(method, { customer: intent.body['customer'] });
  }
  scope.emit('payment_intent.succeeded', paid.body);
  return { status: 200, body: paid.body };
}

/** Records a decline of a new charge, or of `pending`, a charge that is pending. */
export async function declineCharge(
  scope: Scope,
  { intent, method }: Pick<Attempt, 'intent' | 'method'>,
  why: Decline,
  pending?: Stored,
): Promise<StripeAnswer> {
  const { book } = scope;
  const stored = pending ?? (await insertCharge(scope, intent, method));
  await book.update(stored, {
    status: 'failed',
    failure_code: why.code,
    failure_message: declineMessage(why),
    outcome: outcomeOf(why),
  });
  const error = cardError(why, { charge: stored.id, payment_method: method.body });
  return failIntent(scope, intent, error, { latest_charge: stored.id });
}

export function failAuthentication(
  scope: Scope,
  { intent, method }: Pick<Attempt, 'intent' | 'method'>,
): Promise<StripeAnswer> {
  const error = {
    type: 'card_error',
    ...coded('payment_intent_authentication_failure'),
    message:
      'We are unable to authenticate your payment method. Please choose a different payment method and try again.',
    payment_method: method.body,
  };
  return failIntent(scope, intent, error, {});
}

async function failIntent(
  scope: Scope,
  intent: Stored,
  error: StripeObject,
  more: StripeObject,
): Promise<StripeAnswer> {
  const failed = await scope.book.update(intent, {
    ...more,
    status: 'requires_payment_method',
    payment_method: null,
    last_payment_error: error,
    next_action: null,
    processing: null,
  });
  scope.emit('payment_intent.payment_failed', failed.body);
  return { status: 402, body: { error: { ...error, payment_intent: failed.body } } };
}

async function startProcessing(scope: Scope, { intent, method }: Attempt): Promise<StripeAnswer> {
  const stored = await insertCharge(scope, intent, method);
  const started = await scope.book.update(intent, {
    status: 'processing',
    latest_charge: stored.id,
    payment_method: method.id,
    last_payment_error: null,
    processing: { type: 'card', card: {} },
  });
  scope.emit('payment_intent.processing', started.body);
  return { status: 200, body: started.body };
}

async function requireAction(scope: Scope, attempt: Attempt): Promise<StripeAnswer> {
  const { intent, method, returnUrl } = attempt;
  const url = `${scope.publicUrl}/challenge/${intent.id}`;
  const waiting = await scope.book.update(
    intent,
    {
      status: 'requires_action',
      payment_method: method.id,
      next_action:
        returnUrl === null
          ? {
              type: 'use_stripe_sdk',
              use_stripe_sdk: { type: 'three_d_secure_redirect', stripe_js: url },
            }
          : { type: 'redirect_to_url', redirect_to_url: { url, return_url: returnUrl } },
    },
    { returnUrl },
  );
  scope.emit('payment_intent.requires_action', waiting.body);
  return { status: 200, body: waiting.body };
}

async function insertCharge(scope: Scope, intent: Stored, method: Stored): Promise<Stored> {
  return scope.book.insert('charge', newCharge(newId('ch'), scope.now, intent.body, method.body));
}

/** Returns the error of a declined card, for the answer and for `last_payment_error`. */
export function cardError(why: Decline, more: StripeObject = {}): StripeObject {
  return {
    type: 'card_error',
    ...coded(why.code),
    message: declineMessage(why),
    ...(why.declineCode === null ? {} : { decline_code: why.declineCode }),
    ...(why.adviceCode === null ? {} : { advice_code: why.adviceCode }),
    ...(why.networkAdviceCode ? { network_advice_code: why.networkAdviceCode } : {}),
    ...(why.networkDeclineCode ? { network_decline_code: why.networkDeclineCode } : {}),
    ...more,
  };
}

function outcomeOf(why: Decline | null): StripeObject {
  return {
    advice_code: why?.adviceCode ?? null,
    network_advice_code: why?.networkAdviceCode ?? null,
    network_decline_code: why?.networkDeclineCode ?? null,
    network_status: networkStatusOf(why),
    reason: why === null ? null : (why.declineCode ?? why.code),
    risk_level: 'normal',
    risk_score: 20,
    seller_message: why === null ? 'Payment complete.' : 'The bank declined the payment.',
    type: why === null ? 'authorized' : why.isBlocked ? 'blocked' : 'issuer_declined',
  };
}

function networkStatusOf(why: Decline | null): string {
  if (why === null) return 'approved_by_network';
  return why.isBlocked ? 'not_sent_to_network' : 'declined_by_network';
}
