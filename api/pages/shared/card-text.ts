import type { Language } from '../parts/language.ts';

export interface ShownCard {
  readonly brand: string;
  readonly lastFourDigit: string;
}

const BRAND_NAMES: Readonly<Record<string, string>> = {
  amex: 'American Express',
  diners: 'Diners Club',
  jcb: 'JCB',
  unionpay: 'UnionPay',
};

/** Returns, for example, `Visa ending in 4242`. */
export function cardText({ say }: Language, { brand, lastFourDigit: digits }: ShownCard): string {
  const name = BRAND_NAMES[brand] ?? brand.charAt(0).toUpperCase() + brand.slice(1);
  return say('cardEnding', { brand: name, digits });
}
