import type { Checkout } from '../../../db/repositories/checkouts/sessions.ts';
import type { PaidPayment } from '../../../db/repositories/payments/receipts.ts';
import type { Language } from '../../../domain/language/language.ts';
import { nextPaymentLines, purchaseLines } from '../../../domain/language/receipt-lines.ts';
import type { NextPayment, Purchase, Sold } from '../../../domain/language/receipt-lines.ts';
import type { ListRow } from './views.tsx';

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
  const { amountMinor, refundedMinor, currency, receiptId, intentId, subscriptionId } = payment;
  return [
    { label: say('paidAmount'), text: money(amountMinor, currency), isSum: true },
    ...(refundedMinor === 0
      ? []
      : [{ label: say('refundedAmount'), text: money(refundedMinor, currency) }]),
    ...purchaseLines(language, purchase, {
      card: payment.card,
      at: payment.paidAt,
      reference: receiptId ?? intentId,
      kind: subscriptionId === null ? 'payment' : 'subscription',
    }),
  ];
}

/** `next`: the next payment, if any. */
export function savedCardReceipt(
  language: Language,
  saved: Sold,
  purchase: Purchase,
  next: NextPayment | null = null,
): ListRow[] {
  return [...nextPaymentLines(language, next), ...purchaseLines(language, purchase, saved)];
}
