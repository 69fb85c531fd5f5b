import { isDeclineCode } from '../../domain/declines.ts';
import type { DeclineCode } from '../../domain/declines.ts';

/**
 * Stripe's codes of a declined payment: from an API error, or from `last_payment_error` of a PaymentIntent.
 */
export interface StripeDecline {
  readonly code?: string | undefined;
  readonly decline_code?: string | undefined;
  readonly advice_code?: string | undefined;
}

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

/**
 * Returns our code of a decline. An unknown code becomes `card_declined`, after which a retry may succeed. If
 * the card network forbids another try of the card, a code that allows retries becomes
 * `authorisation_revoked`, which ends the retry plan. Rules: D-30, D-42.
 */
export function declineCodeOf({ code, decline_code, advice_code }: StripeDecline): DeclineCode {
  const known = [decline_code, code].map(ourCode).find((each) => each !== null) ?? 'card_declined';
  const mayRetry = known === 'card_declined' || known === 'insufficient_funds';
  return advice_code === 'do_not_try_again' && mayRetry ? 'authorisation_revoked' : known;
}

function ourCode(name: string | undefined): DeclineCode | null {
  if (name === undefined) return null;
  if (Object.hasOwn(CODES, name)) return CODES[name] ?? null;
  // `card_declined` is Stripe's general code. The decline code is more exact.
  return isDeclineCode(name) ? name : null;
}
