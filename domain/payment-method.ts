/** Rules: IF-2.10, D-43. */
export const PAYMENT_METHOD_KINDS = ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'] as const;
export type PaymentMethodKind = (typeof PAYMENT_METHOD_KINDS)[number];

/** What pays where another method is not available. Rule: D-43. */
const FALLBACK: PaymentMethodKind = 'CARD';

/** In which currencies a method can pay: the sandbox gateway takes cards only. Rule: D-43. */
const AVAILABILITY: {
  readonly asOf: string;
  readonly currencies: Readonly<Record<PaymentMethodKind, 'every' | readonly string[]>>;
} = {
  asOf: '2026-11-20',
  currencies: { CARD: 'every', GOOGLE_PAY: [], APPLE_PAY: [] },
};

/** Whether a hosted page can take a method in an upper-case currency code. Rule: D-43. */
function isAvailable(kind: PaymentMethodKind, currency: string): boolean {
  const currencies = AVAILABILITY.currencies[kind];
  return currencies === 'every' || currencies.includes(currency);
}

/**
 * Names each pair of currency and wanted method that is not available, and what is used instead; ""
 * when every wanted method is. Rules: IF-2.7, D-37, D-43.
 */
export function fallbackDisclaimer(wanted: readonly PaymentMethodKind[], currency: string): string {
  const missing = wanted.filter((kind) => !isAvailable(kind, currency));
  if (missing.length === 0) return '';
  const pairs = missing.map((kind) => `${kind} with ${currency}`).join(' and ');
  return `${pairs} ${missing.length === 1 ? 'is' : 'are'} not available; the checkout falls back to ${FALLBACK}.`;
}
