import { isDeclineCode } from '../../domain/declines.ts';
import type { DeclineCode } from '../../domain/declines.ts';
import type { RetryAdvice } from '../port.ts';

/** Stripe's codes of a declined payment: from an API error, or from `last_payment_error` of a PaymentIntent. */
export interface StripeDecline {
  readonly code?: string | undefined;
  readonly decline_code?: string | undefined;
  readonly advice_code?: string | undefined;
}

const ADVICE: Readonly<Record<string, RetryAdvice | undefined>> = {
  do_not_try_again: 'never',
  try_again_later: 'later',
};

/** Our code for each of Stripe's codes that has another name here. */
const CODES: Readonly<Record<string, DeclineCode>> = {
  withdrawal_count_limit_exceeded: 'insufficient_funds',
  incorrect_cvc: 'invalid_cvc',
  incorrect_number: 'incorrect_card_number',
  invalid_number: 'incorrect_card_number',
  pickup_card: 'lost_card',
  merchant_blacklist: 'fraudulent',
  security_violation: 'fraudulent',
  reenter_transaction: 'processing_error',
  try_again_later: 'issuer_unavailable',
  issuer_not_available: 'issuer_unavailable',
  invalid_account: 'account_closed',
  new_account_information_available: 'account_closed',
  revocation_of_authorization: 'authorisation_revoked',
  revocation_of_all_authorizations: 'authorisation_revoked',
  stop_payment_order: 'authorisation_revoked',
  payment_intent_authentication_failure: 'authentication_required',
};

/** An unknown code becomes `card_declined`, after which a retry may succeed. */
export function declineOf({ code, decline_code, advice_code }: StripeDecline): {
  code: DeclineCode;
  gatewayCode: string | null;
  retry: RetryAdvice;
} {
  return {
    // `decline_code` comes first, because `code` is often only Stripe's general `card_declined`.
    code: [decline_code, code].map(ourCode).find((each) => each !== null) ?? 'card_declined',
    gatewayCode: decline_code || code || null,
    retry: ADVICE[advice_code ?? ''] ?? 'unknown',
  };
}

function ourCode(name: string | undefined): DeclineCode | null {
  if (name === undefined) return null;
  if (Object.hasOwn(CODES, name)) return CODES[name] ?? null;
  return isDeclineCode(name) ? name : null;
}
