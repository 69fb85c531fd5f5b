/** Currencies that have no decimals at Stripe and two decimals here. */
const WITHOUT_DECIMALS = ['MGA'];
/** Currencies that have two decimals at Stripe and none here. Both decimals must be zero. */
const WITH_ZERO_DECIMALS = ['ISK', 'UGX'];
/** Currencies with three decimals. At Stripe the third decimal must be zero. */
const THREE_DECIMALS = ['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'];

/** Stripe's documented maximum has eight digits. */
const MAXIMUM = 99_999_999;

/**
 * Returns the amount in Stripe's units, or the reason why Stripe cannot charge the amount. `amountMinor` is
 * in our minor units.
 */
export function stripeAmount(
  amountMinor: number,
  currency: string,
): { amount: number } | { problem: string } {
  const scaled = scale(amountMinor, currency);
  if (scaled === null) return { problem: `Stripe cannot charge ${amountMinor} of ${currency}` };
  if (scaled > MAXIMUM) return { problem: 'Stripe charges at most eight digits' };
  return { amount: scaled };
}

function scale(amountMinor: number, currency: string): number | null {
  if (WITH_ZERO_DECIMALS.includes(currency)) return amountMinor * 100;
  if (WITHOUT_DECIMALS.includes(currency)) return amountMinor % 100 ? null : amountMinor / 100;
  return THREE_DECIMALS.includes(currency) && amountMinor % 10 ? null : amountMinor;
}
