import { describe, expect, it } from 'vitest';
import {
  DECLINES,
  declineMessage,
  isDeclineCode,
  stopsAutomaticRetries,
} from '../../domain/declines.ts';
import type { DeclineCode } from '../../domain/declines.ts';

const codes = Object.keys(DECLINES) as DeclineCode[];

describe('decline table', () => {
  it('holds exactly the sixteen published codes [D-42, IF-7]', () => {
    expect(codes.join(' ')).toBe(
      'card_declined insufficient_funds expired_card invalid_cvc incorrect_card_number lost_card ' +
        'stolen_card fraudulent authentication_required processing_error issuer_unavailable ' +
        'payment_method_removed account_closed authorisation_revoked card_not_supported limit_exceeded',
    );
  });

  it('stops automatic retries for eight hard codes, expired_card and authentication_required only [D-42, D-30]', () => {
    const hard =
      'incorrect_card_number lost_card stolen_card fraudulent payment_method_removed account_closed authorisation_revoked card_not_supported';
    expect(codes.filter((code) => stopsAutomaticRetries(code)).toSorted()).toEqual(
      [...hard.split(' '), 'authentication_required', 'expired_card'].toSorted(),
    );
  });

  it('has a different message for every code [D-42]', () => {
    const messages = codes.map(declineMessage);
    expect(new Set(messages).size).toBe(16);
    for (const message of messages) expect(message).toMatch(/^[A-Z].{10,}\.$/);
    expect(declineMessage('insufficient_funds')).toBe(
      'The account does not hold enough money for this payment.',
    );
  });

  it('recognises exactly its own codes [D-42]', () => {
    expect(codes.every(isDeclineCode)).toBe(true);
    for (const other of ['toString', '', 'CARD_DECLINED', 'do_not_honor', null, 7, undefined]) {
      expect(isDeclineCode(other)).toBe(false);
    }
  });
});
