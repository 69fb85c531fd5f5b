/**
 * `message` is the `errorMessage` that the merchant reads. Automatic retries stop at a `hard` decline, at
 * `authentication_required`, and when the gateway forbids another try.
 */
export const DECLINES = {
  card_declined: {
    message: 'The card was declined.',
    kind: 'soft',
    stopsAutomaticRetries: false,
  },
  insufficient_funds: {
    message: 'The account does not hold enough money for this payment.',
    kind: 'soft',
    stopsAutomaticRetries: false,
  },
  expired_card: {
    message: 'The card has expired.',
    kind: 'soft',
    stopsAutomaticRetries: false,
  },
  invalid_cvc: {
    message: 'The security code of the card is not valid.',
    kind: 'soft',
    stopsAutomaticRetries: false,
  },
  incorrect_card_number: {
    message: 'The card number is not correct.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
  lost_card: {
    message: 'The card was reported as lost.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
  stolen_card: {
    message: 'The card was reported as stolen.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
  fraudulent: {
    message: 'The payment was blocked because it looks fraudulent.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
  authentication_required: {
    message: 'The payer has to confirm this payment with the bank.',
    kind: 'soft',
    stopsAutomaticRetries: true,
  },
  processing_error: {
    message: 'The payment could not be processed.',
    kind: 'soft',
    stopsAutomaticRetries: false,
  },
  issuer_unavailable: {
    message: 'The bank of the card could not be reached.',
    kind: 'soft',
    stopsAutomaticRetries: false,
  },
  payment_method_removed: {
    message: 'The payment method no longer exists.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
  account_closed: {
    message: 'The account behind the card is closed.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
  authorisation_revoked: {
    message: 'The payer withdrew the permission to charge this card.',
    kind: 'hard',
    stopsAutomaticRetries: true,
  },
} as const satisfies Record<string, Decline>;

interface Decline {
  readonly message: string;
  readonly kind: 'soft' | 'hard';
  readonly stopsAutomaticRetries: boolean;
}

export type DeclineCode = keyof typeof DECLINES;

/** True for a code of {@link DECLINES}. Inherited names such as `toString` are no codes. */
export function isDeclineCode(value: unknown): value is DeclineCode {
  return typeof value === 'string' && Object.hasOwn(DECLINES, value);
}

/** Returns the `errorMessage` that the merchant reads with this code. Null for an unknown code. */
export function declineMessage(code: string | null): string | null {
  return isDeclineCode(code) ? DECLINES[code].message : null;
}

/** True when no automatic retry may follow this decline until the payment method changes. */
export function stopsAutomaticRetries(code: DeclineCode): boolean {
  return DECLINES[code].stopsAutomaticRetries;
}
