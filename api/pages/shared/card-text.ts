/** The parts of a card that pages show. */
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
export function cardText(card: ShownCard | null): string {
  if (card === null) return 'your card';
  const { brand, lastFourDigit } = card;
  const name = BRAND_NAMES[brand] ?? brand.charAt(0).toUpperCase() + brand.slice(1);
  return `${name} ending in ${lastFourDigit}`;
}
