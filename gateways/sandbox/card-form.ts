import type { DeclineCode } from '../../domain/declines.ts';
import { testCard } from './test-cards.ts';
import type { TestCard } from './test-cards.ts';

/** A card as the payer typed it. The card exists only during one request, and is never stored or logged. */
export interface TypedCard {
  readonly number: string;
  readonly expiry: string;
  readonly cvc: string;
}

/** The part of a card that may be stored: neither the number nor the CVC. */
export interface ReadCard {
  readonly card: TestCard;
  readonly lastFourDigit: string;
  readonly expiryMonth: number;
  readonly expiryYear: number;
}

/**
 * Reads a typed card. The number may have spaces and dashes. The expiry may be MM/YY, MM / YY, MMYY or
 * MM/YYYY. Returns the decline code of the first problem: a number that is not a published test number, an
 * expiry that is past or unreadable, a CVC that does not have 3 digits (American Express: 4). A card is
 * valid until its expiry month ends, in UTC. Rule: D-61.
 */
export function readCard(typed: TypedCard, now: number): ReadCard | DeclineCode {
  const number = typed.number.replaceAll(/[\s-]/g, '');
  const card = testCard(number);
  if (card === undefined) return 'incorrect_card_number';

  const expiry = readExpiry(typed.expiry);
  if (expiry === null || now >= Date.UTC(expiry.year, expiry.month, 1)) return 'expired_card';

  const cvcPattern = card.brand === 'amex' ? /^\d{4}$/ : /^\d{3}$/;
  if (!cvcPattern.test(typed.cvc.trim())) return 'invalid_cvc';

  return {
    card,
    lastFourDigit: number.slice(-4),
    expiryMonth: expiry.month,
    expiryYear: expiry.year,
  };
}

function readExpiry(text: string): { month: number; year: number } | null {
  const match =
    /^(0?[1-9]|1[0-2])\s*\/\s*(\d{4}|\d{2})$/.exec(text.trim()) ??
    /^(0[1-9]|1[0-2])(\d{4}|\d{2})$/.exec(text.trim());
  if (match === null) return null;
  const year = Number(match[2]);
  return { month: Number(match[1]), year: year < 100 ? 2000 + year : year };
}
