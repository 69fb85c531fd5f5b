import type { DeclineCode } from '../../../domain/declines.ts';

/**
 * Texts that say to the payer why a payment was declined. Codes share a text, so that a thief does not learn that the
 * card was reported as lost or stolen.
 */
export const REASONS = {
  card_declined: 'reasonDeclined',
  insufficient_funds: 'reasonFunds',
  expired_card: 'reasonExpired',
  invalid_cvc: 'reasonDetails',
  incorrect_card_number: 'reasonDetails',
  lost_card: 'reasonUnusable',
  stolen_card: 'reasonUnusable',
  fraudulent: 'reasonUnusable',
  authentication_required: 'reasonDeclined',
  processing_error: 'reasonTechnical',
  issuer_unavailable: 'reasonTechnical',
  payment_method_removed: 'reasonUnusable',
  account_closed: 'reasonUnusable',
  authorisation_revoked: 'reasonUnusable',
} as const satisfies Record<DeclineCode, string>;

export type Reason = (typeof REASONS)[DeclineCode];
