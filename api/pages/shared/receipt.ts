import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import type { Language } from '../parts/language.ts';
import type { ListRow } from './views.tsx';

export interface Purchase {
  readonly productName: string | null;
  readonly merchantName: string;
}

/** The reference is the merchant's `receiptId`, or else the intent's id. */
export function paymentReceipt(
  language: Language,
  payment: PaidPayment,
  purchase: Purchase,
): ListRow[] {
  const { say, money } = language;
  const { amountMinor, refundedMinor, currency, receiptId, intentId } = payment;
  return [
    { label: say('paidAmount'), text: money(amountMinor, currency) },
    ...(refundedMinor === 0
      ? []
      : [{ label: say('refundedAmount'), text: money(refundedMinor, currency) }]),
    ...receiptRows(language, purchase, {
      card: payment.card,
      at: payment.paidAt,
      reference: receiptId ?? intentId,
    }),
  ];
}

/** `at`: null if not known. `reference`: the merchant's `receiptId`, or our id. */
export function savedCardReceipt(
  language: Language,
  saved: { card: ShownCard | null; at: number | null; reference: string },
  purchase: Purchase,
): ListRow[] {
  const { say } = language;
  const nothing = { label: say('paidAmount'), text: say('nothing') };
  return [nothing, ...receiptRows(language, purchase, saved)];
}

function receiptRows(
  language: Language,
  { productName, merchantName }: Purchase,
  { card, at, reference }: { card: ShownCard | null; at: number | null; reference: string },
): ListRow[] {
  const { say, quote, date } = language;
  const row = (label: string, text: string | null): ListRow[] =>
    text === null ? [] : [{ label, text }];
  return [
    ...row(say('productLabel'), productName && quote(productName)),
    ...row(say('merchantLabel'), quote(merchantName)),
    ...row(say('cardLabel'), card && cardText(language, card)),
    ...row(say('dateLabel'), at === null ? null : date(at)),
    ...row(say('referenceLabel'), quote(reference)),
  ];
}

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

export function cardText({ say }: Language, { brand, lastFourDigit: digits }: ShownCard): string {
  const name = BRAND_NAMES[brand] ?? brand.charAt(0).toUpperCase() + brand.slice(1);
  return say('cardEnding', { brand: name, digits });
}
