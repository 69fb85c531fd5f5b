import type { HostedPayment } from '../../../db/repositories/payments/hosted.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import { INTENT_PARAMETER } from '../../page-links.ts';
import { paymentPath } from '../../../runtime/payer-links.ts';
import { BankLink, declinedText, withBankAbove } from '../shared/bank.tsx';
import { callbackUrl } from '../shared/callback-url.ts';
import {
  askCard,
  askDetails,
  closedPage,
  lockedPage,
  processingPage,
  resultPage,
  shownTestCards,
} from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import { knownDetails, missingDetails } from '../shared/details-form.ts';
import type { TypedDetails } from '../shared/details-form.ts';
import type { Page } from '../shared/page.tsx';
import { paymentReceipt } from '../shared/receipt.ts';
import type { Sale } from '../shared/views.tsx';
import { paymentStageOf } from './stage.ts';

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
  const { language } = deps;
  const { say } = language;
  const amount = language.money(payment.amountMinor, payment.currency);
  const purchase = { productName: payment.description, merchantName: name };
  const receipt = payment.paid === null ? [] : paymentReceipt(language, payment.paid, purchase);
  switch (paymentStageOf(payment, nowAt)) {
    case 'open':
      return missingDetails(payment).length > 0
        ? paymentDetailsPage(deps, token, payment, nowAt, new Map())
        : cardPage(deps, token, payment, nowAt, browser);
    case 'atBank': {
      const { intentId } = payment;
      const page = cardPage(deps, token, payment, nowAt, browser);
      const action = <BankLink language={language} home={paymentPath(token)} intentId={intentId} />;
      return withBankAbove(language, page, { amount, action });
    }
    case 'locked':
      return lockedPage(language, back);
    case 'processing':
      return processingPage(language, paymentPath(token));
    case 'paid': {
      const texts = [say('paidTo', { amount, name })];
      return resultPage(language, { title: say('paymentReceived'), texts, receipt }, onward);
    }
    case 'refunded': {
      const texts = [say('refunded', { amount, name })];
      return resultPage(language, { title: say('refundedTitle'), texts, receipt }, onward);
    }
    case 'expired': {
      const texts = [say('paymentExpired', { name })];
      return closedPage(language, 410, { title: say('paymentExpiredTitle'), texts }, back);
    }
    case 'cancelled': {
      const texts = [say('nothingMoreCharged')];
      return closedPage(language, 410, { title: say('paymentCancelledTitle'), texts }, back);
    }
  }
}

function cardPage(
  deps: PageDeps,
  token: string,
  payment: HostedPayment,
  nowAt: number,
  browser: string,
): Page {
  return askCard(deps, {
    home: paymentPath(token),
    browser,
    sessionId: payment.sessionId,
    sale: saleOf(deps, payment, nowAt),
    payerName: knownDetails(payment).name,
    alert: declinedText(deps.language, payment.attempt, payment.lastErrorCode),
  });
}

/** Returns the page with the details form. `typed`: the values of the form that was sent; empty on the first visit. */
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
  'merchantName' | 'mode' | 'description' | 'amountMinor' | 'currency' | 'tokenise'
>;

/** Returns the offer of a payment, without a cancel link. */
export function paymentSale(deps: Pick<PageDeps, 'gateway' | 'language'>, order: Order): Sale {
  const { description, merchantName } = order;
  const { language } = deps;
  const { say } = language;
  const amount = language.money(order.amountMinor, order.currency);
  return {
    language,
    merchantName,
    productName: description ?? say('paymentTo', { name: merchantName }),
    productDescription: null,
    offer: {
      action: say('pay', { amount }),
      onceEntered: say('chargedOnceEntered', { amount }),
      lines: [{ label: say('toPayOnce'), text: amount }],
    },
    consent: order.tokenise ? say('consentSavedCard', { name: merchantName }) : null,
    cancelUrl: null,
    testCards: shownTestCards(deps, order.mode),
  };
}

function withFacts(payment: HostedPayment, url: string | null, nowAt: number): string | null {
  if (url === null) return null;
  return callbackUrl(url, {
    [INTENT_PARAMETER]: payment.intentId,
    status: intentStatusAt(payment, nowAt),
    receipt_id: payment.receiptId,
  });
}
