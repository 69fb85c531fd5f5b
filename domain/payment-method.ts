export const PAYMENT_METHOD_KINDS = ['CARD', 'GOOGLE_PAY', 'APPLE_PAY'] as const;
export type PaymentMethodKind = (typeof PAYMENT_METHOD_KINDS)[number];

const FALLBACK: PaymentMethodKind = 'CARD';

/** The currencies in which each method is available. The sandbox gateway takes only cards. */
const AVAILABILITY: {
  readonly asOf: string;
  readonly currencies: Readonly<Record<PaymentMethodKind, 'every' | readonly string[]>>;
} = {
  asOf: '2026-11-20',
  currencies: { CARD: 'every', GOOGLE_PAY: [], APPLE_PAY: [] },
};

/** True if a hosted page accepts the method in the currency with this upper-case code. */
function isAvailable(kind: PaymentMethodKind, currency: string): boolean {
  const currencies = AVAILABILITY.currencies[kind];
  return currencies === 'every' || currencies.includes(currency);
}

/**
 * Returns the methods that a hosted page offers. CARD replaces each name in `unavailable`, and is offered if `wanted`
 * is empty. Neither list has duplicates.
 */
export function offeredMethods(
  wanted: readonly string[],
  currency: string,
): { offered: PaymentMethodKind[]; unavailable: string[] } {
  const names = [...new Set(wanted)];
  const find = (name: string) =>
    PAYMENT_METHOD_KINDS.find((kind) => kind === name && isAvailable(kind, currency));
  const offered = new Set(names.map((name) => find(name) ?? FALLBACK));
  return {
    offered: offered.size === 0 ? [FALLBACK] : [...offered],
    unavailable: names.filter((name) => find(name) === undefined),
  };
}

/** Returns a sentence about each wanted method that CARD replaces in the currency; "" if none is replaced. */
export function fallbackDisclaimer(wanted: readonly string[], currency: string): string {
  const { unavailable } = offeredMethods(wanted, currency);
  if (unavailable.length === 0) return '';
  const pairs = unavailable.map((kind) => `${kind} with ${currency}`).join(' and ');
  return `${pairs} ${unavailable.length === 1 ? 'is' : 'are'} not available; the checkout falls back to ${FALLBACK}.`;
}

/** Maximum number of cards per session of a hosted page. In test mode it only bounds the number of rows. */
export const CARD_TRIES_MAX = { live: 5, test: 100 } as const;

/** Returns the first instant at which a card is expired: the end of its month, in UTC. */
export const cardExpiresAt = (card: { expiryMonth: number; expiryYear: number }): number =>
  Date.UTC(card.expiryYear, card.expiryMonth, 1);

/** The number of digits of a card number. */
export const NUMBER_DIGITS = { min: 12, max: 19 };

/** The same for each network whose numbers all have one length. */
export const NETWORK_DIGITS = [
  { prefix: /^3[47]/, digits: 15 },
  { prefix: /^5[1-5]|^2[2-7]/, digits: 16 },
  { prefix: /^4/, digits: 16 },
];

/** Stands in place of a one-time token for a card that the customer has saved before. No gateway's token has a colon. */
export const savedCardToken = (paymentMethodId: string): string => `saved:${paymentMethodId}`;

/** Returns the id of the saved card; null for a gateway's token. */
export const readSavedCardToken = (token: string): string | null =>
  /^saved:(.*)$/.exec(token)?.[1] ?? null;

export type CardField = 'number' | 'expiry' | 'cvc';

/** The typing errors that the gateway reports, each with its field. Each is also the key of the page's text. */
export const MISTYPES = {
  numberMissing: 'number',
  numberUnreadable: 'number',
  numberTooShort: 'number',
  numberTooLong: 'number',
  numberMistyped: 'number',
  expiryUnreadable: 'expiry',
  expiryPast: 'expiry',
  cvcThree: 'cvc',
  cvcFour: 'cvc',
} as const satisfies Record<string, CardField>;

export type MistypeText = keyof typeof MISTYPES;
