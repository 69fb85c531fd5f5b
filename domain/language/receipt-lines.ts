import type { Contract } from '../declaration.ts';
import { cardText } from './card-text.ts';
import type { ShownCard } from './card-text.ts';
import type { Language } from './language.ts';

export interface Purchase {
  readonly productName: string | null;
  readonly merchantName: string;
}

export interface ReceiptLine {
  readonly label: string;
  readonly text: string;
  /** The card brand that the text names. */
  readonly brand?: string | undefined;
  /** True if the text names a day, so that a page names the time zone. */
  readonly isDated?: boolean;
  /** The contract that the text names. */
  readonly contract?: Contract;
}

/** What a receipt confirms. */
export interface Sold {
  readonly card: ShownCard | null;
  /** Null if not known. */
  readonly at: number | null;
  /** The merchant's `receiptId`, or our id. */
  readonly reference: string;
  /** Null: no contract was concluded. */
  readonly kind: Contract['kind'] | null;
}

export interface NextPayment {
  readonly amount: string;
  readonly at: number | null;
}

export function nextPaymentLines({ say, date }: Language, next: NextPayment | null): ReceiptLine[] {
  if (next === null || next.at === null) return [];
  const text = say('amountOn', { amount: next.amount, date: date(next.at) });
  return [{ label: say('nextPayment'), text, isDated: true }];
}

export function purchaseLines(
  language: Language,
  { productName, merchantName }: Purchase,
  { card, at, reference, kind }: Sold,
): ReceiptLine[] {
  const { say, quote, date } = language;
  const row = (label: string, text: string | null, more?: Partial<ReceiptLine>): ReceiptLine[] =>
    text === null ? [] : [{ label, text, ...more }];
  return [
    ...row(say('productLabel'), productName && quote(productName)),
    ...row(say('merchantLabel'), quote(merchantName)),
    ...row(say('cardLabel'), card && cardText(language, card), { brand: card?.brand }),
    ...row(say('dateLabel'), at === null ? null : date(at), { isDated: true }),
    ...row(
      say('referenceLabel'),
      quote(reference),
      kind === null ? {} : { contract: { reference, kind } },
    ),
  ];
}
