import { invalid } from './errors.ts';

/** Currencies without decimals, by Stripe's list. */
const ZERO_DECIMAL = new Set(
  'bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '),
);

/** Zero-decimal currencies that Stripe takes with two decimals, which must be 00. */
const WHOLE_HUNDREDS = new Set(['isk', 'ugx']);

/** Currencies with three decimals. The third decimal must be 0. */
const THREE_DECIMAL = new Set(['bhd', 'jod', 'kwd', 'omr', 'tnd']);

/** Currencies of ISO 4217 that Stripe refuses. */
const REFUSED = new Set('cup ern iqd irr kpw lyd mru sdg ssp stn syp tmt ved ves zwg'.split(' '));

/** Stripe's documented minimum charge in US dollars, in cents. Other currencies have none in the double. */
const USD_MINIMUM = 50;
const MAXIMUM = 99_999_999;

export function checkAmount(amount: number, currency: string): void {
  if (!/^[a-z]{3}$/.test(currency) || REFUSED.has(currency)) {
    throw invalid(`Invalid currency: ${currency}.`, { param: 'currency' });
  }
  const param = { param: 'amount' };
  if (amount < 1) {
    throw invalid('Invalid positive integer', { code: 'parameter_invalid_integer', ...param });
  }
  const minimum = currency === 'usd' ? USD_MINIMUM : 1;
  if (amount < minimum) {
    const least = `Amount must be at least ${display(minimum, currency)}`;
    throw invalid(least, { code: 'amount_too_small', ...param });
  }
  if (amount > MAXIMUM) {
    const most = `Amount must be no more than ${display(MAXIMUM, currency)}`;
    throw invalid(most, { code: 'amount_too_large', ...param });
  }
  const step = WHOLE_HUNDREDS.has(currency) ? 100 : THREE_DECIMAL.has(currency) ? 10 : 1;
  if (amount % step !== 0) {
    throw invalid(`Amount must be divisible by ${step} in ${currency}.`, param);
  }
}

/** An amount as Stripe's messages show it, for example `$0.50 usd`. */
export function display(amount: number, currency: string): string {
  const sign = currency === 'usd' ? '$' : '';
  const decimals = ZERO_DECIMAL.has(currency) ? 0 : THREE_DECIMAL.has(currency) ? 3 : 2;
  return `${sign}${(amount / 10 ** decimals).toFixed(decimals)} ${currency}`;
}
