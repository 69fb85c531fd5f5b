import type { Language } from './language.ts';

export interface ShownCard {
  readonly brand: string;
  readonly lastFourDigit: string;
}

/** By the id that gateways return. */
export const BRAND_NAMES = {
  visa: 'Visa',
  mastercard: 'Mastercard',
  amex: 'American Express',
  diners: 'Diners Club',
  discover: 'Discover',
  jcb: 'JCB',
  unionpay: 'UnionPay',
} as const;

export function cardText({ say }: Language, card: ShownCard): string {
  return say('cardEnding', { brand: brandName(card), digits: card.lastFourDigit });
}

export function brandName({ brand }: ShownCard): string {
  const names: Readonly<Record<string, string>> = BRAND_NAMES;
  return names[brand] ?? brand.charAt(0).toUpperCase() + brand.slice(1);
}
