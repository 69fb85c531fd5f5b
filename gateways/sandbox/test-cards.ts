import type { DeclineCode, StatedAdvice } from '../../domain/declines.ts';
import type { PublishedTestCard } from '../port.ts';

/**
 * `save`: refused when it is saved. `charge`: saved, then declined; with `verify` refused when it is saved.
 * `later_charges`: saved in both cases, then declined.
 */
export type TestCardMoment = 'save' | 'charge' | 'later_charges';

export interface TestCard extends PublishedTestCard {
  readonly code: DeclineCode | null;
  readonly when: TestCardMoment | null;
  /** What the bank advises when it declines the card. */
  readonly advice: StatedAdvice | null;
  readonly brand: string;
  /** ISO 3166 alpha-2 */
  readonly country: string;
}

const LABELS = {
  save: (code: DeclineCode) => `refused when saved: ${code}`,
  charge: (code: DeclineCode) => `declined: ${code}`,
  later_charges: (code: DeclineCode) => `saved, then declined on every charge: ${code}`,
} satisfies Record<TestCardMoment, (code: DeclineCode) => string>;

/** Every number that the tokeniser accepts, all published as test numbers. Each decline code has one. */
export const TEST_CARDS: readonly TestCard[] = [
  pays('4242424242424242', 'visa', 'US'),
  pays('4111111111111111', 'visa', 'US'),
  pays('4000056655665556', 'visa', 'US'),
  pays('4000008260000000', 'visa', 'GB'),
  pays('4000002760000016', 'visa', 'DE'),
  {
    ...pays('4000003560000008', 'visa', 'IN'),
    label: 'of an Indian bank: pays once, is not saved',
  },
  pays('5555555555554444', 'mastercard', 'US'),
  pays('2223003122003222', 'mastercard', 'US'),
  pays('378282246310005', 'amex', 'US'),
  pays('6011111111111117', 'discover', 'US'),
  pays('3056930009020004', 'diners', 'US'),
  pays('6200000000000005', 'unionpay', 'CN'),
  declines('4000000000000002', 'card_declined', 'charge'),
  declines('4000000000009995', 'insufficient_funds', 'charge'),
  declines('4000000000000069', 'expired_card', 'charge'),
  declines('4000000000000127', 'invalid_cvc', 'charge'),
  declines('4242424242424241', 'incorrect_card_number', 'save'),
  declines('4000000000009987', 'lost_card', 'charge'),
  declines('4000000000009979', 'stolen_card', 'charge'),
  declines('4100000000000019', 'fraudulent', 'charge'),
  declines('4000002760003184', 'authentication_required', 'charge', 'visa', 'DE'),
  declines('4000000000000119', 'processing_error', 'charge'),
  declines('3566002020360505', 'issuer_unavailable', 'charge', 'jcb', 'JP'),
  declines('6011000990139424', 'payment_method_removed', 'later_charges', 'discover', 'US'),
  declines('4000111111111115', 'account_closed', 'later_charges'),
  declines('378734493671000', 'authorisation_revoked', 'later_charges', 'amex', 'US'),
  declines('4000000000000341', 'card_declined', 'later_charges'),
  declines('4000000000000028', 'card_not_supported', 'later_charges'),
  declines('4000000000006975', 'limit_exceeded', 'charge'),
  advises('4000000000000010', 'never', { kind: 'never' }),
  advises('4000000000000036', 'new details needed', { kind: 'new_details_needed' }),
  advises('4000000000000044', 'not before 24 h', { kind: 'not_before', waitMs: 24 * 3_600_000 }),
];

const byNumber = new Map(TEST_CARDS.map((card) => [card.number, card]));

export function testCard(number: string): TestCard | undefined {
  return byNumber.get(number);
}

function pays(number: string, brand: string, country: string): TestCard {
  return { number, label: 'pays', code: null, when: null, advice: null, brand, country };
}

function declines(
  number: string,
  code: DeclineCode,
  when: TestCardMoment,
  brand = 'visa',
  country = 'US',
): TestCard {
  return { number, label: LABELS[when](code), code, when, advice: null, brand, country };
}

function advises(number: string, label: string, advice: StatedAdvice): TestCard {
  const card = declines(number, 'card_declined', 'later_charges');
  return { ...card, label: `${card.label}, advice ${label}`, advice };
}
