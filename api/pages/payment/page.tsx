import type { HostedPayment } from '../../../db/repositories/payments/hosted.ts';
import { formatAmount } from '../../../domain/money.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import { INTENT_PARAMETER, paymentPath } from '../../page-links.ts';
import { callbackUrl } from '../shared/callback-url.ts';
import {
  askCard,
  askDetails,
  closedPage,
  DECLINED_PAYMENT,
  lockedPage,
  processingPage,
  resultPage,
  shownTestCards,
} from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { knownDetails, missingDetails } from '../shared/details-form.ts';
import type { TypedDetails } from '../shared/details-form.ts';
import type { Page } from '../shared/page.tsx';
import type { Sale } from '../shared/views.tsx';
import { paymentStageOf } from './stage.ts';

/** The page of a hosted payment in its present stage. */
export function paymentPage(
  deps: PageDeps,
  token: string,
  payment: HostedPayment,
  nowAt: number,
  browser: string,
): Page {
  const { merchantName: name, cancelUrl, callbackUrl: doneUrl } = payment;
  const back = { name, url: withFacts(payment, cancelUrl ?? doneUrl, nowAt) };
  const onward = { name, url: withFacts(payment, doneUrl, nowAt) };
  const amount = formatAmount(payment.amountMinor, payment.currency);
  switch (paymentStageOf(payment, nowAt)) {
    case 'open':
      return missingDetails(payment).length > 0
        ? paymentDetailsPage(deps, token, payment, nowAt, new Map())
        : askCard(deps, {
            home: paymentPath(token),
            browser,
            sessionId: payment.sessionId,
            sale: saleOf(deps, payment, nowAt),
            payerName: knownDetails(payment).name,
            alert: payment.lastErrorCode === null ? null : DECLINED_PAYMENT,
          });
    case 'locked':
      return lockedPage(back);
    case 'processing':
      return processingPage(paymentPath(token));
    case 'paid': {
      const texts = [`${amount} was paid to ${name}.`];
      return resultPage({ title: 'Thank you: your payment was received', texts }, onward);
    }
    case 'refunded': {
      const texts = [`${amount} was paid to ${name} and refunded in full.`];
      return resultPage({ title: 'This payment was refunded', texts }, onward);
    }
    case 'expired': {
      const texts = [`Nothing was charged. Ask ${name} for a new link if you still want to pay.`];
      return closedPage(410, { title: 'This payment page has expired', texts }, back);
    }
    case 'cancelled': {
      const texts = ['Nothing was charged, and nothing will be.'];
      return closedPage(410, { title: 'This payment was cancelled', texts }, back);
    }
  }
}

/** `typed` is empty on the first visit. */
export function paymentDetailsPage(
  deps: PageDeps,
  token: string,
  payment: HostedPayment,
  nowAt: number,
  typed: TypedDetails,
): Page {
  return askDetails(deps, {
    home: paymentPath(token),
    sessionId: payment.sessionId,
    sale: saleOf(deps, payment, nowAt),
    names: missingDetails(payment),
    typed,
  });
}

function saleOf(deps: PageDeps, payment: HostedPayment, nowAt: number): Sale {
  const cancelUrl = withFacts(payment, payment.cancelUrl ?? payment.callbackUrl, nowAt);
  return { ...paymentSale(deps, payment), cancelUrl };
}

type Order = Pick<
  HostedPayment,
  'merchantName' | 'mode' | 'description' | 'amountMinor' | 'currency'
>;

/** Returns the offer of a payment, without a cancel link. */
export function paymentSale(deps: Pick<PageDeps, 'gateway'>, order: Order): Sale {
  const { description, merchantName } = order;
  const amount = formatAmount(order.amountMinor, order.currency);
  return {
    merchantName,
    productName: description ?? `Payment to ${merchantName}`,
    productDescription: null,
    offer: {
      action: `Pay ${amount}`,
      onceEntered: `As soon as you have entered it, ${amount} is charged.`,
      lines: [{ label: 'To pay, once', text: amount }],
    },
    cancelUrl: null,
    testCards: shownTestCards(deps, order.mode),
  };
}

/** Returns the URL with the intent's id, its status and the receipt id as query parameters. Rule: D-44. */
function withFacts(payment: HostedPayment, url: string | null, nowAt: number): string | null {
  if (url === null) return null;
  return callbackUrl(url, {
    [INTENT_PARAMETER]: payment.intentId,
    status: intentStatusAt(payment, nowAt),
    receipt_id: payment.receiptId,
  });
}
