import type { EventCard } from '../domain/events.ts';

/** A saved card in answers to merchants. Rules: IF-2.3, D-10a. */
export function presentCard({ kind, ...card }: EventCard & { kind: string }) {
  const { brand, country, lastFourDigit, expiryMonth, expiryYear } = card;
  return {
    paymentMethod: kind,
    cardMetadata: {
      brand,
      ...(country === null ? {} : { country }),
      lastFourDigit,
      expiryMonth,
      expiryYear,
    },
  };
}
