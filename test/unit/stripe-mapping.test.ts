import { describe, expect, it } from 'vitest';
import { amountProblem, ourAmount, stripeAmount } from '../../gateways/stripe/amounts.ts';
import type { DeclineCode } from '../../domain/declines.ts';
import { declineOf } from '../../gateways/stripe/declines.ts';

describe('a decline of Stripe', () => {
  /** All codes of https://docs.stripe.com/declines/codes and of its testing pages, read in November 2026. */
  const STRIPE_CODES: Partial<Record<DeclineCode, string>> = {
    account_closed: 'invalid_account',
    authentication_required: 'authentication_required payment_intent_authentication_failure',
    authorisation_revoked:
      'revocation_of_all_authorizations revocation_of_authorization stop_payment_order',
    card_declined:
      'approve_with_id call_issuer card_declined debit_not_authorized do_not_honor do_not_try_again duplicate_transaction generic_decline incorrect_pin incorrect_zip invalid_amount invalid_pin mobile_device_authentication_required new_account_information_available no_action_taken offline_pin_required online_or_offline_pin_required pin_try_exceeded previously_declined_do_not_retry testmode_decline test_mode_live_card',
    card_not_supported:
      'card_not_supported currency_not_supported not_permitted restricted_card service_not_allowed transaction_not_allowed',
    expired_card: 'expired_card invalid_expiry_month invalid_expiry_year',
    fraudulent: 'fraudulent highest_risk_level merchant_blacklist security_violation',
    incorrect_card_number: 'incorrect_number invalid_number',
    insufficient_funds: 'insufficient_funds',
    invalid_cvc: 'incorrect_cvc invalid_cvc',
    issuer_unavailable: 'issuer_not_available try_again_later',
    limit_exceeded: 'card_velocity_exceeded withdrawal_count_limit_exceeded',
    lost_card: 'lost_card pickup_card',
    processing_error: 'processing_error reenter_transaction',
    stolen_card: 'stolen_card',
  };

  it.each(
    Object.entries(STRIPE_CODES).flatMap(([code, names]) =>
      names.split(' ').map((name) => [name, code] as const),
    ),
  )('with the decline code %s is %s [D-42]', (name, code) => {
    expect(declineOf({ code: 'card_declined', decline_code: name }).code).toBe(code);
  });

  it.each([
    [{ code: 'incorrect_cvc', decline_code: '' }, 'invalid_cvc'],
    [{ code: 'expired_card' }, 'expired_card'],
    [{ code: 'incorrect_number' }, 'incorrect_card_number'],
    [{ code: 'authentication_required' }, 'authentication_required'],
    [{ code: 'card_declined', decline_code: 'a_code_of_tomorrow' }, 'card_declined'],
    [{ code: 'toString' }, 'card_declined'],
    [{}, 'card_declined'],
  ] as const)('%j is %s [D-42]', (decline, code) => {
    expect(declineOf(decline).code).toBe(code);
  });

  const HOUR_MS = 3_600_000;
  const wait = (hours: number) => ({ kind: 'not_before', waitMs: hours * HOUR_MS });
  const NEVER = { kind: 'never' };
  const NEW_DETAILS = { kind: 'new_details_needed' };

  it.each([
    [{ advice_code: 'do_not_try_again' }, NEVER],
    [{ advice_code: 'confirm_card_data' }, NEW_DETAILS],
    [{ advice_code: 'try_again_later' }, null],
    [{ decline_code: 'do_not_try_again' }, NEVER],
    [{ decline_code: 'new_account_information_available' }, NEW_DETAILS],
    [{ decline_code: 'previously_declined_do_not_retry' }, NEVER],
    [{}, null],
  ])('with %j has the advice %j [D-30]', (said, advice) => {
    expect(declineOf({ code: 'card_declined', ...said }).advice).toEqual(advice);
  });

  it.each([
    ['mastercard', '01', NEW_DETAILS],
    ['mastercard', '02', null],
    ['mastercard', '03', NEVER],
    ['mastercard', '21', NEVER],
    ['mastercard', '24', wait(1)],
    ['mastercard', '25', wait(24)],
    ['mastercard', '26', wait(48)],
    ['mastercard', '27', wait(96)],
    ['mastercard', '28', wait(144)],
    ['mastercard', '29', wait(192)],
    ['mastercard', '30', wait(240)],
    ['mastercard', '40', null],
    ['visa', '01', NEVER],
    ['visa', '02', null],
    ['visa', '03', NEW_DETAILS],
    ['visa', '04', null],
    ['amex', '01', null],
  ])('of %s with the network’s advice %s has the advice %j [D-30]', (brand, code, advice) => {
    const decline = {
      code: 'card_declined',
      network_advice_code: code,
      network_decline_code: '51',
      payment_method: { card: { brand } },
    };
    expect(declineOf(decline)).toMatchObject({ advice, networkCode: '51' });
  });

  it('follows the network where it names an instant and Stripe says only later [D-30]', () => {
    const decline = {
      advice_code: 'do_not_try_again',
      network_advice_code: '24',
      payment_method: { card: { brand: 'mastercard' } },
    };
    expect(declineOf(decline).advice).toEqual(wait(1));
  });

  it.each([
    ['highest_risk_level', 'fraudulent', null],
    ['rule', 'fraudulent', null],
    [null, 'fraudulent', null],
    ['previously_declined_do_not_retry', 'lost_card', NEVER],
  ])('that Stripe blocked for %s is %s with the advice %j [D-42]', (reason, code, advice) => {
    const decline = { code: 'card_declined', decline_code: reason === null ? '' : 'lost_card' };
    expect(declineOf(decline, { type: 'blocked', reason })).toMatchObject({
      code,
      advice,
      gatewayCode: reason ?? 'blocked',
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
