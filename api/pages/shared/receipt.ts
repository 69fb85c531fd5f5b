import type { Checkout } from '../../../db/repositories/checkouts/sessions.ts';
import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import { cardText } from '../../../domain/language/card-text.ts';
import type { ShownCard } from '../../../domain/language/card-text.ts';
import type { Language } from '../../../domain/language/language.ts';
import type { ListRow } from './views.tsx';

export interface Purchase {
  readonly productName: string | null;
  readonly merchantName: string;
}

/** Returns the name and the description of the product. The description of an order without a name is its name. */
export function productText({
  productPage,
  description,
}: Pick<Checkout, 'productPage' | 'description'>) {
  const name = productPage?.name;
  return {
    productName: name ?? description,
    productDescription: productPage?.description ?? (name === undefined ? null : description),
  };
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
    { label: say('paidAmount'), text: money(amountMinor, currency), isSum: true },
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

/** `at`: null if not known. `reference`: the merchant's `receiptId`, or our id. `next`: the next payment, if any. */
export function savedCardReceipt(
  language: Language,
  saved: { card: ShownCard | null; at: number | null; reference: string },
  purchase: Purchase,
  next: NextPayment | null = null,
): ListRow[] {
  return [...nextPaymentRows(language, next), ...receiptRows(language, purchase, saved)];
}

export interface NextPayment {
  readonly amount: string;
  readonly at: number | null;
}

export function nextPaymentRows({ say, date }: Language, next: NextPayment | null): ListRow[] {
  if (next === null || next.at === null) return [];
  const text = say('amountOn', { amount: next.amount, date: date(next.at) });
  return [{ label: say('nextPayment'), text, isDated: true }];
}

function receiptRows(
  language: Language,
  { productName, merchantName }: Purchase,
  { card, at, reference }: { card: ShownCard | null; at: number | null; reference: string },
): ListRow[] {
  const { say, quote, date } = language;
  const row = (label: string, text: string | null, more?: Partial<ListRow>): ListRow[] =>
    text === null ? [] : [{ label, text, ...more }];
  return [
    ...row(say('productLabel'), productName && quote(productName)),
    ...row(say('merchantLabel'), quote(merchantName)),
    ...row(say('cardLabel'), card && cardText(language, card), { brand: card?.brand }),
    ...row(say('dateLabel'), at === null ? null : date(at), { isDated: true }),
    ...row(say('referenceLabel'), quote(reference), { reference }),
  ];
}
