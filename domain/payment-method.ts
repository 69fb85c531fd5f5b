/** Rules: IF-2.10, D-43. */
export const PAYMENT_METHOD_KINDS = ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'] as const;
export type PaymentMethodKind = (typeof PAYMENT_METHOD_KINDS)[number];

/** The method used instead of an unavailable method. Rule: D-43. */
const FALLBACK: PaymentMethodKind = 'CARD';

/** The currencies in which each method is available. The sandbox gateway takes only cards. Rule: D-43. */
const AVAILABILITY: {
  readonly asOf: string;
  readonly currencies: Readonly<Record<PaymentMethodKind, 'every' | readonly string[]>>;
} = {
  asOf: '2026-11-20',
  currencies: { CARD: 'every', GOOGLE_PAY: [], APPLE_PAY: [] },
};

/** Whether a hosted page accepts a method in a currency, given by its upper-case code. Rule: D-43. */
function isAvailable(kind: PaymentMethodKind, currency: string): boolean {
  const currencies = AVAILABILITY.currencies[kind];
  return currencies === 'every' || currencies.includes(currency);
}

/**
 * Names each unavailable pair of currency and wanted method, and the method used instead. Returns "" when
 * every wanted method is available. Rules: IF-2.7, D-37, D-43.
 */
export function fallbackDisclaimer(wanted: readonly PaymentMethodKind[], currency: string): string {
  const missing = wanted.filter((kind) => !isAvailable(kind, currency));
  if (missing.length === 0) return '';
  const pairs = missing.map((kind) => `${kind} with ${currency}`).join(' and ');
  return `${pairs} ${missing.length === 1 ? 'is' : 'are'} not available; the checkout falls back to ${FALLBACK}.`;
}
