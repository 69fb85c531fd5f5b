import { z } from 'zod';
import type { EventCard } from '../domain/events.ts';
import type { PaymentMethodKind } from '../domain/payment-method.ts';
import { paymentMethodKind } from './answer-fields.ts';

const cardMetadata = z
  .object({
    brand: z.string(),
    country: z.string().optional().meta({ description: 'ISO 3166 alpha-2. Absent when unknown.' }),
    lastFourDigit: z.string().regex(/^\d{4}$/),
    expiryMonth: z.int().min(1).max(12),
    expiryYear: z.int().min(2000),
  })
  .meta({ id: 'CardMetadata', description: 'Details of a card.' });

export const cardFields = { paymentMethod: paymentMethodKind, cardMetadata };

/** Returns a saved card as fields of an answer. Omits the country if it is unknown. */
export function presentCard({ kind, ...card }: EventCard & { kind: PaymentMethodKind }) {
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

export const exampleCard = {
  paymentMethod: 'CARD' as const,
  cardMetadata: {
    brand: 'visa',
    country: 'US',
    lastFourDigit: '4242',
    expiryMonth: 12,
    expiryYear: 2030,
  },
};
