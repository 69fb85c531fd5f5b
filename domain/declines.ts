export const DECLINES = {
  card_declined: 'The card was declined.',
  insufficient_funds: 'The account does not hold enough money for this payment.',
  expired_card: 'The card has expired.',
  invalid_cvc: 'The security code of the card is not valid.',
  incorrect_card_number: 'The card number is not correct.',
  lost_card: 'The card was reported as lost.',
  stolen_card: 'The card was reported as stolen.',
  fraudulent: 'The payment was blocked because it looks fraudulent.',
  authentication_required: 'The payer has to confirm this payment with the bank.',
  processing_error: 'The payment could not be processed.',
  issuer_unavailable: 'The bank of the card could not be reached.',
  payment_method_removed: 'The payment method no longer exists.',
  account_closed: 'The account behind the card is closed.',
  authorisation_revoked: 'The payer withdrew the permission to charge this card.',
  card_not_supported: 'The card does not allow this kind of payment.',
  limit_exceeded: 'The card has reached its limit of payments.',
} as const;

export type DeclineCode = keyof typeof DECLINES;

/** True for a code of {@link DECLINES}. Inherited names such as `toString` are no codes. */
export function isDeclineCode(value: unknown): value is DeclineCode {
  return typeof value === 'string' && Object.hasOwn(DECLINES, value);
}

/** Returns the `errorMessage` that the merchant reads with this code. Null for an unknown code. */
export function declineMessage(code: string | null): string | null {
  return isDeclineCode(code) ? DECLINES[code] : null;
}

/** Automatic retries stop at these declines, and when the bank advises so. */
export const STOPS_RETRIES: readonly string[] = [
  'expired_card',
  'incorrect_card_number',
  'lost_card',
  'stolen_card',
  'fraudulent',
  'authentication_required',
  'payment_method_removed',
  'account_closed',
  'authorisation_revoked',
  'card_not_supported',
] satisfies DeclineCode[];

/** The kinds of advice after which no automatic retry follows. */
export const STOPPING_ADVICE = ['never', 'new_details_needed'] as const;

type StoppingAdvice = { kind: (typeof STOPPING_ADVICE)[number] };

/** The bank's advice as a gateway reports it, which knows no test clock. Its wait begins with the decline. */
export type StatedAdvice = StoppingAdvice | { kind: 'not_before'; waitMs: number };

/** `at`: the bank does not want another try before this instant, in the time of the subscription. */
export type RetryAdvice = StoppingAdvice | { kind: 'not_before'; at: number };

/** Dates the advice of a decline at `declinedAt`. */
export function datedAdvice(stated: StatedAdvice, declinedAt: number): RetryAdvice {
  return stated.kind === 'not_before'
    ? { kind: stated.kind, at: declinedAt + stated.waitMs }
    : stated;
}

/** True when no automatic retry may follow this decline until the payment method changes. */
export function stopsAutomaticRetries(code: string, advice?: RetryAdvice): boolean {
  return STOPS_RETRIES.includes(code) || (advice !== undefined && advice.kind !== 'not_before');
}
