import { isDeclineCode } from '../../domain/declines.ts';
import type { DeclineCode } from '../../domain/declines.ts';
import type { DecidedCharge } from '../port.ts';
import { adviceOf } from './advice.ts';

/** What Stripe says about a declined payment, in `last_payment_error` of a PaymentIntent. */
export interface StripeDecline {
  readonly code?: string | undefined;
  readonly decline_code?: string | undefined;
  readonly advice_code?: string | undefined;
  readonly network_advice_code?: string | undefined;
  readonly network_decline_code?: string | undefined;
  readonly payment_method?: { readonly card?: { readonly brand?: string } | undefined } | undefined;
}

/** `outcome` of the charge: `blocked` if Stripe did not ask the bank. */
export interface StripeChargeOutcome {
  readonly type: string;
  readonly reason: string | null;
}

type Decline = Omit<Extract<DecidedCharge, { kind: 'declined' }>, 'gatewayChargeId'>;

/** Our code for each of Stripe's codes that has another name here. */
const CODES: Readonly<Record<string, DeclineCode>> = {
  withdrawal_count_limit_exceeded: 'limit_exceeded',
  card_velocity_exceeded: 'limit_exceeded',
  incorrect_cvc: 'invalid_cvc',
  incorrect_number: 'incorrect_card_number',
  invalid_number: 'incorrect_card_number',
  invalid_expiry_month: 'expired_card',
  invalid_expiry_year: 'expired_card',
  pickup_card: 'lost_card',
  merchant_blacklist: 'fraudulent',
  security_violation: 'fraudulent',
  highest_risk_level: 'fraudulent',
  reenter_transaction: 'processing_error',
  try_again_later: 'issuer_unavailable',
  issuer_not_available: 'issuer_unavailable',
  invalid_account: 'account_closed',
  revocation_of_authorization: 'authorisation_revoked',
  revocation_of_all_authorizations: 'authorisation_revoked',
  stop_payment_order: 'authorisation_revoked',
  payment_intent_authentication_failure: 'authentication_required',
  currency_not_supported: 'card_not_supported',
  not_permitted: 'card_not_supported',
  restricted_card: 'card_not_supported',
  service_not_allowed: 'card_not_supported',
  transaction_not_allowed: 'card_not_supported',
};

/** Stripe blocks a card that the bank has declined for good, and does not ask the bank again. */
const BLOCKED_FOR_GOOD = 'previously_declined_do_not_retry';

/** An unknown code becomes `card_declined`, after which a retry may succeed. */
export function declineOf(error: StripeDecline, outcome?: StripeChargeOutcome | null): Decline {
  const { code, decline_code } = error;
  // `decline_code` comes first, because `code` is often only Stripe's general `card_declined`.
  const said = [decline_code, code].map(ourCode).find((each) => each !== null) ?? 'card_declined';
  const blockedBy = outcome?.type === 'blocked' ? (outcome.reason ?? 'blocked') : null;
  const isForGood = [blockedBy, decline_code].includes(BLOCKED_FOR_GOOD);
  return {
    kind: 'declined',
    code: blockedBy === null || isForGood ? said : 'fraudulent',
    gatewayCode: blockedBy ?? (decline_code || code || null),
    networkCode: error.network_decline_code ?? null,
    advice: isForGood
      ? { kind: 'never' }
      : adviceOf({ ...error, network: error.payment_method?.card?.brand }),
  };
}

/** A decline by Stripe or by us, without an answer of the bank. */
export function declinedBeforeBank(code: DeclineCode, gatewayCode: string | null): Decline {
  return { kind: 'declined', code, gatewayCode, networkCode: null, advice: null };
}

function ourCode(name: string | undefined): DeclineCode | null {
  if (name === undefined) return null;
  if (Object.hasOwn(CODES, name)) return CODES[name] ?? null;
  return isDeclineCode(name) ? name : null;
}
