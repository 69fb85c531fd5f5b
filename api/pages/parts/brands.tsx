import { BRAND_NAMES } from '../../../domain/language/card-text.ts';

interface Brand {
  readonly name: string;
  /** The first digits of the brand's card numbers. */
  readonly first: RegExp;
  /** The digits before each space of a number, as on the card. */
  readonly groups: RegExp;
  /** Own shapes and colours, which are no logos: background and white path on a card of 24 × 16. */
  readonly colour: string;
  readonly path: string;
}

export const FOURS = /\d{4}(?=\d)/g;
/** 4, 6 and the rest. */
const FOUR_SIX = /^\d{4}(?=\d)|(?!^)\d{6}(?=\d)/g;

const brand = (
  id: keyof typeof BRAND_NAMES,
  first: RegExp,
  [colour, path]: [colour: string, path: string],
  groups = FOURS,
): Brand => ({ name: BRAND_NAMES[id], first, groups, colour, path });

/** By the id that gateways return. */
export const BRANDS: Readonly<Record<string, Brand>> = {
  visa: brand('visa', /^4/, ['#1f4a9c', 'M7 4h3l2 5 2-5h3l-4 8h-2z']),
  mastercard: brand('mastercard', /^(5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [
    '#a8421c',
    'M12 3l5 5-5 5-5-5z',
  ]),
  amex: brand('amex', /^3[47]/, ['#0f6c86', 'M8 4h8v8H8z'], FOUR_SIX),
  diners: brand('diners', /^3(0[0-5]|[689])/, ['#44526b', 'M12 3a5 5 0 0 1 0 10z'], FOUR_SIX),
  discover: brand('discover', /^6(011|4[4-9]|5)/, ['#8a5a00', 'M9 3l8 5-8 5z']),
  jcb: brand('jcb', /^35(2[89]|[3-8])/, ['#2c6b3f', 'M6 5h12v2H6zM6 9h12v2H6z']),
  unionpay: brand('unionpay', /^62/, ['#7a2548', 'M11 3h2v4h4v2h-4v4h-2V9H7V7h4z']),
};

/** Returns a number of digits only in the groups of its brand. The card script does the same. */
export function inGroups(digits: string): string {
  const found = Object.values(BRANDS).find(({ first }) => first.test(digits));
  return digits.replace(found?.groups ?? FOURS, '$& ');
}

/** Returns the names of the brands of these cards. */
export function brandsOf(cards: readonly { readonly number: string }[]): string[] {
  const hasCard = ({ first }: Brand) => cards.some(({ number }) => first.test(number));
  return Object.values(BRANDS)
    .filter(hasCard)
    .map(({ name }) => name);
}

/** A small picture beside the name of a card's brand; nothing for an unknown brand. */
export function BrandMark({ brand: id }: { brand: string }) {
  const found = BRANDS[id];
  if (found === undefined) return null;
  return (
    <svg class="mark" viewBox="0 0 24 16" aria-hidden="true">
      <rect width="24" height="16" rx="3" fill={found.colour} />
      <path d={found.path} fill="#fff" />
    </svg>
  );
}
