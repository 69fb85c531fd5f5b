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
 * The methods that a hosted page offers for wanted names: an unavailable name becomes CARD. `unavailable`
 * has the names that were replaced. Both have no duplicates. Rule: D-43.
 */
export function offeredMethods(
  wanted: readonly string[],
  currency: string,
): { offered: PaymentMethodKind[]; unavailable: string[] } {
  const names = [...new Set(wanted)];
  const isOffered = (name: string): name is PaymentMethodKind =>
    PAYMENT_METHOD_KINDS.some((kind) => kind === name && isAvailable(kind, currency));
  const unavailable = names.filter((name) => !isOffered(name));
  const offered = names.filter(isOffered);
  const needsFallback = names.length > offered.length || offered.length === 0;
  if (needsFallback && !offered.includes(FALLBACK)) offered.push(FALLBACK);
  return { offered, unavailable };
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
