import { describe, expect, it } from 'vitest';
import { amountProblem, ourAmount, stripeAmount } from '../../gateways/stripe/amounts.ts';
import { declineOf } from '../../gateways/stripe/declines.ts';

describe('a decline of Stripe', () => {
  it.each([
    [{ code: 'card_declined', decline_code: 'insufficient_funds' }, 'insufficient_funds'],
    [
      { code: 'card_declined', decline_code: 'withdrawal_count_limit_exceeded' },
      'insufficient_funds',
    ],
    [{ code: 'incorrect_cvc', decline_code: '' }, 'invalid_cvc'],
    [{ code: 'expired_card' }, 'expired_card'],
    [{ code: 'incorrect_number' }, 'incorrect_card_number'],
    [{ code: 'card_declined', decline_code: 'pickup_card' }, 'lost_card'],
    [{ code: 'card_declined', decline_code: 'merchant_blacklist' }, 'fraudulent'],
    [{ code: 'card_declined', decline_code: 'issuer_not_available' }, 'issuer_unavailable'],
    [{ code: 'card_declined', decline_code: 'invalid_account' }, 'account_closed'],
    [{ code: 'card_declined', decline_code: 'stop_payment_order' }, 'authorisation_revoked'],
    [{ code: 'authentication_required' }, 'authentication_required'],
    [{ code: 'card_declined', decline_code: 'a_code_of_tomorrow' }, 'card_declined'],
    [{ code: 'toString' }, 'card_declined'],
    [{}, 'card_declined'],
  ] as const)('%j is %s [D-42]', (decline, code) => {
    expect(declineOf(decline).code).toBe(code);
  });

  it.each([
    ['do_not_try_again', 'never'],
    ['try_again_later', 'later'],
    ['confirm_card_data', 'unknown'],
    [undefined, 'unknown'],
  ] as const)('with the advice %s keeps its code and gets retry %s [D-30]', (advice, retry) => {
    const decline = { code: 'card_declined', decline_code: 'generic_decline' };
    expect(declineOf({ ...decline, advice_code: advice })).toEqual({
      code: 'card_declined',
      gatewayCode: 'generic_decline',
      retry,
    });
  });

  it.each([
    [{ code: 'expired_card' }, 'expired_card'],
    [{ code: 'incorrect_cvc', decline_code: '' }, 'incorrect_cvc'],
    [{}, null],
  ] as const)('%j keeps the code of Stripe: %s [D-42]', (decline, gatewayCode) => {
    expect(declineOf(decline).gatewayCode).toBe(gatewayCode);
  });
});

describe('an amount at Stripe', () => {
  it.each([
    [1_999, 'USD', { amount: 1_999 }],
    [500, 'JPY', { amount: 500 }],
    [500, 'ISK', { amount: 50_000 }],
    [500, 'UGX', { amount: 50_000 }],
    [12_300, 'MGA', { amount: 123 }],
    [12_345, 'MGA', { problem: 'invalid_charge_amount' }],
    [1_230, 'KWD', { amount: 1_230 }],
    [1_234, 'KWD', { problem: 'invalid_charge_amount' }],
    [99_999_999, 'USD', { amount: 99_999_999 }],
    [100_000_000, 'USD', { problem: 'amount_too_large' }],
    [1_000_000, 'ISK', { problem: 'amount_too_large' }],
  ] as const)('for %i minor units of %s is %j [D-02]', (amountMinor, currency, expected) => {
    expect(stripeAmount(amountMinor, currency)).toEqual(expected);
  });
});

describe('the check of a requested amount at Stripe', () => {
  it.each([
    [50, 'USD', null],
    [49, 'USD', 'must be at least 50 in USD, which is the minimum charge of Stripe'],
    [50, 'JPY', null],
    [49, 'JPY', 'must be at least 50 in JPY, which is the minimum charge of Stripe'],
    [30, 'GBP', null],
    [17_499, 'HUF', 'must be at least 17500 in HUF, which is the minimum charge of Stripe'],
    [1, 'ISK', null],
    [999_999, 'ISK', null],
    [1_000_000, 'ISK', 'must have at most eight digits at Stripe'],
    [12_300, 'MGA', null],
    [12_345, 'MGA', 'must be a multiple of 100 in MGA, because Stripe charges no other amount'],
    [1_230, 'KWD', null],
    [1_234, 'KWD', 'must be a multiple of 10 in KWD, because Stripe charges no other amount'],
    [99_999_999, 'USD', null],
    [100_000_000, 'USD', 'must have at most eight digits at Stripe'],
  ] as const)('finds for %i minor units of %s the problem %j [D-03]', (amount, code, problem) => {
    expect(amountProblem(amount, code, 'charge')).toBe(problem);
  });

  it('has no minimum for a refund, but requires the same multiples [D-03]', () => {
    expect(amountProblem(1, 'USD', 'refund')).toBeNull();
    expect(amountProblem(1_234, 'KWD', 'refund')).toBe(
      'must be a multiple of 10 in KWD, because Stripe charges no other amount',
    );
  });
});

describe('an amount that Stripe sends', () => {
  it.each([
    ['USD', 1_999, 1_999],
    ['ISK', 500_00, 500],
    ['MGA', 20, 2_000],
    ['KWD', 1_990, 1_990],
  ])('in %s, %d, is %d in minor units', (currency, amount, amountMinor) => {
    expect(ourAmount(amount, currency)).toBe(amountMinor);
    expect(stripeAmount(amountMinor, currency)).toEqual({ amount });
  });
});
