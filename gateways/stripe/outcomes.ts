import { Stripe } from 'stripe';
import { GatewayRejectedRequest } from '../port.ts';
import type { DecidedCharge, InProgress, NotSent, UnknownOutcome } from '../port.ts';
import { declinedBeforeBank, declineOf } from './declines.ts';
import { PACED_OUT } from './pace.ts';

/** Codes of a request that was not sent, because the connect failed. */
const NOT_CONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'];

const PACED_OUT_REASON = 'our own limit of requests to the Stripe account was reached';

/**
 * Returns the outcome that a PaymentIntent shows. `absent`: the PaymentIntent was not confirmed. A
 * PaymentIntent is confirmed at most once: its payment method is given at its creation, and a decline removes
 * the payment method.
 */
export function outcomeOf(
  intent: Stripe.PaymentIntent,
): DecidedCharge | InProgress | { kind: 'absent' } {
  const gatewayChargeId = intent.id;
  if (intent.status === 'succeeded') return { kind: 'succeeded', gatewayChargeId };
  if (intent.last_payment_error) {
    return { ...declineOf(intent.last_payment_error, chargeOutcomeOf(intent)), gatewayChargeId };
  }
  if (intent.status === 'canceled') {
    return { ...declinedBeforeBank('processing_error', null), gatewayChargeId };
  }
  if (['requires_confirmation', 'requires_payment_method'].includes(intent.status)) {
    return { kind: 'absent' };
  }
  const payerUrl = intent.next_action?.redirect_to_url?.url;
  return { kind: 'in_progress', ...(payerUrl ? { payerUrl } : {}) };
}

/** Null if the PaymentIntent was read without its charge. */
function chargeOutcomeOf({ latest_charge: charge }: Stripe.PaymentIntent) {
  return typeof charge === 'object' && charge !== null ? charge.outcome : null;
}

/** True if Stripe refused a request because of the PaymentIntent's state. */
export function isUnexpectedState(error: unknown): boolean {
  return (
    error instanceof Stripe.errors.StripeError && error.code === 'payment_intent_unexpected_state'
  );
}

/**
 * Returns whether a failed request may have had an effect.
 *
 * @throws GatewayRejectedRequest if Stripe refused the request as wrong. Such a request had no effect.
 * @throws the error itself if it is not from Stripe.
 */
export function failureOf(error: unknown): NotSent | UnknownOutcome {
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  if (error instanceof Stripe.errors.StripeConnectionError) {
    const code = connectionCode(error);
    if (code === PACED_OUT) return { kind: 'not_sent', reason: PACED_OUT_REASON };
    const reason = code === null ? error.message : `${error.message} (${code})`;
    return { kind: code !== null && NOT_CONNECTED.includes(code) ? 'not_sent' : 'unknown', reason };
  }
  const { statusCode, code, rawType } = error;
  // The SDK gives no status if the body broke off or is not JSON, as an answer of a broken proxy. Stripe may have
  // executed the request.
  if (statusCode === undefined) return { kind: 'unknown', reason: error.message };
  const reason = `Stripe answered ${statusCode} ${code ?? rawType ?? ''}`.trim();
  // Stripe refuses such a request unprocessed. 401 or 403: the key was revoked or has no permission, and a later
  // send uses the operator's newer key. Rate limit: it is exceeded, or the object is locked.
  if (error instanceof Stripe.errors.StripeRateLimitError) return { kind: 'not_sent', reason };
  if ([401, 403].includes(statusCode)) return { kind: 'not_sent', reason, isAccountRefused: true };
  // 409: another request with the same idempotency key is in progress. 424: a service that Stripe needs failed.
  if (![400, 402, 404].includes(statusCode)) return { kind: 'unknown', reason };
  throw new GatewayRejectedRequest(statusCode, code ?? rawType ?? 'unknown');
}

/** Codes that say that the request is wrong or has the wrong key. They say nothing about the payment. */
const OUR_MISTAKES = [
  'livemode_mismatch',
  'platform_account_required',
  'resource_missing',
  'secret_key_required',
  'tls_version_unsupported',
  'url_invalid',
];

/** Parameters with the terms of a payment. A refusal that names another parameter and no code is our mistake. */
const TERMS = ['amount', 'currency'];

/** Stripe's codes of a refused charge that concern this payer or amount. Read on 28 November 2026. */
const OF_PAYMENT = [
  'amount_too_large amount_too_small authentication_failure authentication_required',
  'card_decline_rate_limit_exceeded card_declined cardholder_phone_number_required',
  'charge_exceeds_source_limit charge_exceeds_transaction_limit debit_not_authorized',
  'email_invalid expired_card expired_payment_method incorrect_address incorrect_cvc',
  'incorrect_number incorrect_postal_code incorrect_zip',
  'india_recurring_payment_mandate_canceled insufficient_funds invalid_card_type',
  'invalid_charge_amount invalid_cvc invalid_expiry_month invalid_expiry_year invalid_number',
  'invalid_source_usage payment_intent_action_required payment_intent_authentication_failure',
  'payment_intent_incompatible_payment_method payment_intent_mandate_invalid',
  'payment_intent_payment_attempt_expired payment_intent_payment_attempt_failed',
  'payment_method_billing_details_address_missing payment_method_currency_mismatch',
  'payment_method_customer_decline payment_method_not_available payment_method_provider_decline',
  'payment_method_provider_timeout payment_method_restricted payment_method_unexpected_state',
  'postal_code_invalid processing_error refer_to_customer token_already_used token_in_use',
].flatMap((codes) => codes.split(' '));

/** Stripe's codes of a refused charge that concern every payer of the account. Read on 28 November 2026. */
const OF_ACCOUNT = [
  'account_country_invalid_address account_invalid api_key_expired capability_not_active',
  'country_unsupported no_account not_allowed_on_standard_account platform_api_key_expired',
  'testmode_charges_only',
].flatMap((codes) => codes.split(' '));

/** Returns what a refused charge says: Stripe's code of a decline, or that nothing was charged for another reason. */
export function refusedCharge(error: unknown): { code: string } | NotSent | null {
  if (error instanceof Stripe.errors.StripeCardError) return { code: error.code ?? 'unknown' };
  if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) return null;
  if (isUnexpectedState(error)) return null;
  const { statusCode, code, param, rawType } = error;
  const isOfPayment = code ? OF_PAYMENT.includes(code) : TERMS.includes(param ?? '');
  if (isOfPayment) return { code: code ?? rawType ?? 'unknown' };
  const reason = `Stripe answered ${statusCode ?? 400} ${code ?? error.message}`;
  const isAccountRefused = code ? OF_ACCOUNT.includes(code) : param === undefined;
  return { kind: 'not_sent', reason, ...(isAccountRefused && { isAccountRefused }) };
}

function isMistake({ code, param }: Stripe.errors.StripeError): boolean {
  return code
    ? OUR_MISTAKES.includes(code) || code.startsWith('parameter')
    : param !== undefined && !TERMS.includes(param);
}

/** Returns Stripe's code of a definite refusal: the request had no effect, and its form was right. Else null. */
export function definiteRefusal(error: unknown): string | null {
  const isAnswer =
    error instanceof Stripe.errors.StripeInvalidRequestError ||
    error instanceof Stripe.errors.StripeCardError;
  if (!isAnswer || isUnexpectedState(error)) return null;
  return isMistake(error) ? null : (error.code ?? error.rawType ?? 'unknown');
}

export const unknown = (reason: string): UnknownOutcome => ({ kind: 'unknown', reason });

function connectionCode(error: Stripe.errors.StripeConnectionError): string | null {
  const { detail } = error as { detail?: { code?: unknown; cause?: { code?: unknown } } };
  const code = detail?.cause?.code ?? detail?.code;
  return typeof code === 'string' ? code : null;
}
