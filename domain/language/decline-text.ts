import { isDeclineCode } from '../declines.ts';
import type { DeclineCode } from '../declines.ts';
import type { Language } from './language.ts';

/** Codes share a text, so that a thief does not learn that the card was reported as lost or stolen. */
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
  card_not_supported: 'reasonUnusable',
  limit_exceeded: 'reasonDeclined',
} as const satisfies Record<DeclineCode, string>;

export type Reason = (typeof REASONS)[DeclineCode];

/**
 * The alert after a declined card, by the kind of decline. Says no more than that the bank refused if the code is about
 * a lost or stolen card, a suspected fraud or a single field: it would help a person who tests stolen cards.
 */
export function declineText(
  { say, join, locale }: Language,
  declined: 'paymentDeclined' | 'cardDeclined',
  code: string | null,
): string {
  const reason = isDeclineCode(code) ? REASONS[code] : null;
  const stop = locale === 'ja' ? '。' : '. ';
  const advice =
    reason === 'reasonFunds' || reason === 'reasonExpired'
      ? `${say(reason)}${stop}${say('useAnotherCard')}`
      : reason === 'reasonTechnical'
        ? join(say('tryLater'), say('useAnotherCard'))
        : say('checkDetails');
  return join(say(declined), advice);
}
