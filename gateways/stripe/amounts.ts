import type { AmountUse } from '../port.ts';

const WITHOUT_DECIMALS = ['MGA'];
/** Currencies that have two decimals at Stripe and none here. Both decimals must be zero. */
const WITH_ZERO_DECIMALS = ['ISK', 'UGX'];
/** Currencies with three decimals. At Stripe the third decimal must be zero. */
const THREE_DECIMALS = ['BHD', 'JOD', 'KWD', 'OMR', 'TND'];

/** Active currencies of our table that are missing in the list with which Stripe refuses a currency, 2026-11. */
const NOT_AT_STRIPE = new Set(
  'CUP ERN IQD IRR KPW LYD MRU SDG SSP STN SYP TMT VED VES ZWG'.split(' '),
);

const MAXIMUM = 99_999_999;

/**
 * Stripe's documented minimum charges, in minor units. Stripe compares a charge in another currency with the
 * minimum of the account's settlement currency, at an exchange rate that only Stripe knows.
 */
const MINIMUM: Readonly<Record<string, number>> = {
  AED: 200,
  AUD: 50,
  BGN: 100,
  BRL: 50,
  CAD: 50,
  CHF: 50,
  CZK: 1_500,
  DKK: 250,
  EUR: 50,
  GBP: 30,
  HKD: 400,
  HUF: 17_500,
  INR: 50,
  JPY: 50,
  MXN: 1_000,
  MYR: 200,
  NOK: 300,
  NZD: 50,
  PLN: 200,
  RON: 200,
  SEK: 300,
  SGD: 50,
  THB: 1_000,
  USD: 50,
};

/** Returns the amount in Stripe's units, or the code of Stripe's refusal. Does not check the minimum. */
export function stripeAmount(
  amountMinor: number,
  currency: string,
): { amount: number } | { problem: 'invalid_charge_amount' | 'amount_too_large' } {
  const scaled = scale(amountMinor, currency);
  if (scaled === null) return { problem: 'invalid_charge_amount' };
  if (scaled > MAXIMUM) return { problem: 'amount_too_large' };
  return { amount: scaled };
}

export function amountProblem(
  amountMinor: number,
  currency: string,
  use: AmountUse,
): string | null {
  if (use === 'charge' && NOT_AT_STRIPE.has(currency)) {
    return `cannot be in ${currency}, which Stripe does not charge`;
  }
  const scaled = scale(amountMinor, currency);
  if (scaled === null) {
    return `must be a multiple of ${stepOf(currency)} in ${currency}, because Stripe charges no other amount`;
  }
  if (scaled > MAXIMUM) return 'must have at most eight digits at Stripe';
  const minimum = MINIMUM[currency] ?? 0;
  if (use === 'refund' || scaled >= minimum) return null;
  return `must be at least ${minimum} in ${currency}, which is the minimum charge of Stripe`;
}

function scale(amountMinor: number, currency: string): number | null {
  if (amountMinor % stepOf(currency) !== 0) return null;
  if (WITH_ZERO_DECIMALS.includes(currency)) return amountMinor * 100;
  return WITHOUT_DECIMALS.includes(currency) ? amountMinor / 100 : amountMinor;
}

/** Returns the number of our minor units of which an amount must be a multiple. */
function stepOf(currency: string): number {
  if (WITHOUT_DECIMALS.includes(currency)) return 100;
  return THREE_DECIMALS.includes(currency) ? 10 : 1;
}

export function ourAmount(amount: number, currency: string): number {
  if (WITH_ZERO_DECIMALS.includes(currency)) return Math.round(amount / 100);
  return WITHOUT_DECIMALS.includes(currency) ? amount * 100 : amount;
}
