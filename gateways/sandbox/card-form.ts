import type { DeclineCode } from '../../domain/declines.ts';
import { cardExpiresAt, NETWORK_DIGITS, NUMBER_DIGITS } from '../../domain/payment-method.ts';
import type { CardField, MistypeText } from '../../domain/payment-method.ts';
import { testCard } from './test-cards.ts';
import type { TestCard } from './test-cards.ts';

/** A card as the payer typed it. The card exists only during one request, and is never stored or logged. */
export interface TypedCard {
  readonly number: string;
  readonly expiry: string;
  readonly cvc: string;
}

/** A card that was read. `card` is one of the published test cards, so its number is no secret. The CVC is left out. */
export interface ReadCard {
  readonly kind: 'card';
  readonly card: TestCard;
  readonly lastFourDigit: string;
  readonly expiryMonth: number;
  readonly expiryYear: number;
}

/** The typing errors of a card: for each wrong field, the key of the text that the page shows. */
export type Mistypes = Readonly<Partial<Record<CardField, MistypeText>>>;

export type CardReading =
  | ReadCard
  /** The payer made a typing error, which is no decline. */
  | { readonly kind: 'mistyped'; readonly mistypes: Mistypes }
  | { readonly kind: 'refused'; readonly code: DeclineCode };

/**
 * Reads a typed card: ASCII, full-width, Arabic or Persian digits, spaces, dashes; expiry MM/YY, MM-YY, MM YY,
 * MMYY, or with YYYY, valid to the month's end in UTC. Refuses numbers that are no test numbers.
 */
export function readCard(typed: TypedCard, now: number): CardReading {
  const number = inDigits(typed.number).replaceAll(/[\s-]/g, '');
  const expiry = readExpiry(inDigits(typed.expiry).trim());
  const card = testCard(number);

  const texts: Record<CardField, MistypeText | null> = {
    // The published number of the decline `incorrect_card_number` fails the Luhn check.
    number: card === undefined ? numberMistype(number) : null,
    expiry: expiryMistype(expiry, now),
    cvc: cvcMistype(inDigits(typed.cvc).trim(), number),
  };
  const wrong = Object.entries(texts).filter(([, text]) => text !== null);
  if (wrong.length > 0 || expiry === null) {
    return { kind: 'mistyped', mistypes: Object.fromEntries(wrong) };
  }
  if (card === undefined) return { kind: 'refused', code: 'incorrect_card_number' };
  return {
    kind: 'card',
    card,
    lastFourDigit: number.slice(-4),
    ...expiry,
  };
}

function numberMistype(number: string): MistypeText | null {
  if (number === '') return 'numberMissing';
  if (!/^\d+$/.test(number)) return 'numberUnreadable';
  const digits = NETWORK_DIGITS.find(({ prefix }) => prefix.test(number))?.digits;
  if (number.length < (digits ?? NUMBER_DIGITS.min)) return 'numberTooShort';
  if (number.length > (digits ?? NUMBER_DIGITS.max)) return 'numberTooLong';
  return passesLuhn(number) ? null : 'numberMistyped';
}

function passesLuhn(number: string): boolean {
  const sum = Array.from(number)
    .toReversed()
    .reduce((total, character, index) => {
      const digit = Number(character) * (index % 2 === 0 ? 1 : 2);
      return total + (digit > 9 ? digit - 9 : digit);
    }, 0);
  return sum % 10 === 0;
}

type Expiry = Pick<ReadCard, 'expiryMonth' | 'expiryYear'>;

function expiryMistype(expiry: Expiry | null, now: number): MistypeText | null {
  if (expiry === null) return 'expiryUnreadable';
  return now >= cardExpiresAt(expiry) ? 'expiryPast' : null;
}

/** American Express has a CVC of 4 digits, the other networks of 3. */
function cvcMistype(cvc: string, number: string): MistypeText | null {
  const isAmex = /^3[47]/.test(number);
  if ((isAmex ? /^\d{4}$/ : /^\d{3}$/).test(cvc)) return null;
  return isAmex ? 'cvcFour' : 'cvcThree';
}

function readExpiry(text: string): Expiry | null {
  const match =
    /^(0?[1-9]|1[0-2])\s*[/ .-]\s*(\d{4}|\d{2})$/.exec(text) ??
    /^(0[1-9]|1[0-2])(\d{4}|\d{2})$/.exec(text);
  if (match === null) return null;
  const year = Number(match[2]);
  return { expiryMonth: Number(match[1]), expiryYear: year < 100 ? 2000 + year : year };
}

/** Code points of the digit zero in Arabic and in Persian. Some payers' keyboards type these digits instead of 0 to 9. */
const ZEROS = [0x06_60, 0x06_f0];

/** Returns the text with ASCII digits and signs: `１２／３４` and `١٢/٣٤` become `12/34`. */
function inDigits(text: string): string {
  // NFKC replaces the full-width characters of Japanese keyboards.
  return text.normalize('NFKC').replaceAll(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    const zero = ZEROS.find((first) => code >= first && code <= first + 9);
    return zero === undefined ? digit : String(code - zero);
  });
}
