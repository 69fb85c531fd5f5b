export interface Decline {
  readonly code: string;
  readonly declineCode: string | null;
  readonly adviceCode: string | null;
  readonly networkAdviceCode?: string | null;
  readonly networkDeclineCode?: string | null;
  /** True if Stripe blocks the charge and does not ask the bank. */
  readonly isBlocked?: boolean;
}

/** `setup`: 3D Secure once, at set-up or first charge. `always`: at each. Declined if the payer is absent. */
export type Authentication = 'never' | 'setup' | 'always';

export interface TestCard {
  readonly number: string;
  readonly brand: string;
  readonly authentication: Authentication;
  /** The decline of the set-up and of every charge; null without a decline. */
  readonly decline: Decline | null;
  /** The decline of every charge of a card whose set-up succeeds; null without a decline. */
  readonly chargeDecline: Decline | null;
}

const decline = (code: string, declineCode: string | null, adviceCode: string): Decline => ({
  code,
  declineCode,
  adviceCode,
});

const CARD_DECLINED = decline('card_declined', 'generic_decline', 'try_again_later');

const card = (number: string, brand: string, more: Partial<TestCard> = {}): TestCard => ({
  number,
  brand,
  authentication: 'never',
  decline: null,
  chargeDecline: null,
  ...more,
});

const declined = (number: string, why: Decline): TestCard => card(number, 'visa', { decline: why });

/** Test cards of https://docs.stripe.com/testing. Their advice codes are chosen here. */
export const TEST_CARDS: readonly TestCard[] = [
  card('4242424242424242', 'visa'),
  card('5555555555554444', 'mastercard'),
  card('378282246310005', 'amex'),
  card('4000002500003155', 'visa', { authentication: 'setup' }),
  card('4000002760003184', 'visa', { authentication: 'always' }),
  card('4000000000000341', 'visa', { chargeDecline: CARD_DECLINED }),
  declined('4000000000000002', CARD_DECLINED),
  declined('4000000000009995', decline('card_declined', 'insufficient_funds', 'try_again_later')),
  declined('4000000000009987', decline('card_declined', 'lost_card', 'do_not_try_again')),
  declined('4000000000009979', decline('card_declined', 'stolen_card', 'do_not_try_again')),
  declined('4000000000000069', decline('expired_card', null, 'confirm_card_data')),
  declined('4000000000000127', decline('incorrect_cvc', null, 'confirm_card_data')),
  declined('4000000000000119', decline('processing_error', null, 'try_again_later')),
];

export const AUTHENTICATION_REQUIRED = decline(
  'authentication_required',
  'authentication_required',
  'try_again_later',
);

/** The decline of a card number that has a valid check digit and is no test card. */
export const NOT_A_TEST_CARD = decline('card_declined', 'test_mode_live_card', 'confirm_card_data');

const MESSAGES: Readonly<Record<string, string>> = {
  insufficient_funds: 'Your card has insufficient funds.',
  expired_card: 'Your card has expired.',
  incorrect_cvc: "Your card's security code is incorrect.",
  incorrect_number: 'Your card number is incorrect.',
  processing_error: 'An error occurred while processing your card. Try again in a little bit.',
  authentication_required: 'Your card was declined. This transaction requires authentication.',
};

export function declineMessage({ code, declineCode }: Decline): string {
  return MESSAGES[code] ?? MESSAGES[declineCode ?? ''] ?? 'Your card was declined.';
}

/** True if the last digit of a card number is the correct check digit (Luhn). */
export function hasCheckDigit(number: string): boolean {
  if (!/^\d{12,19}$/.test(number)) return false;
  const sum = number
    .split('')
    .toReversed()
    .reduce((total, digit, index) => {
      const value = Number(digit) * (index % 2 === 1 ? 2 : 1);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
  return sum % 10 === 0;
}
