import {
  fillInPaymentDetails,
  findHostedPayment,
  markPaymentOpened,
} from '../../../db/repositories/payments/hosted.ts';
import type { HostedPayment } from '../../../db/repositories/payments/hosted.ts';
import type { Language } from '../parts/language.ts';
import {
  INTENT_PARAMETER,
  INTENT_PATH,
  paymentPath,
  readSessionToken,
} from '../../../runtime/payer-links.ts';
import {
  askPayer,
  callbackUrl,
  closedPage,
  lockedPage,
  processingPage,
  resultPage,
  shownTestCards,
  unknownPage,
} from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import { languageFor, seeOther, sendPage } from '../shared/page.tsx';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import { latestAttempt } from '../../../db/repositories/payments/shown-attempts.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import { BankLink, declinedText, isAtBank, withBankAbove } from '../shared/bank.tsx';
import type { PageDeps, PageRequest } from '../shared/card-page.tsx';
import type { Page } from '../shared/page.tsx';
import { paymentReceipt } from '../shared/receipt.ts';
import type { Sale } from '../shared/views.tsx';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

export function paymentPageRoutes(routes: PageRoutes): void {
  const { router, deps, limits } = routes;
  const { db, now, orders, webhooks } = deps;
  const unknown = (language: Language) => unknownPage(language, 'unknownPayment');

  router.get(INTENT_PATH, async (ctx) => {
    const intentId = String(ctx.query[INTENT_PARAMETER]);
    const payment = await limits.lookUp(ctx, () => findHostedPayment(db, intentId));
    if (payment === null) sendPage(deps, ctx, unknown(languageFor(ctx)));
    else seeOther(ctx, paymentPath(payment.intentId));
  });

  cardPageRoutes<HostedPayment>(routes, {
    pathOf: paymentPath,
    unknown,
    find: (token) => findHostedPayment(db, readSessionToken(deps, token) ?? token),
    show: (request, payment) => paymentPage(request, payment, now()),
    asks: (payment) => ['open', 'atBank'].includes(paymentStageOf(payment, now())),
    isDecided: (payment) =>
      !['open', 'locked', 'processing', 'atBank'].includes(paymentStageOf(payment, now())),
    limitsOf: ({ tries, checkoutExpiresAt }) => ({
      tries,
      expiresAt: checkoutExpiresAt ?? Infinity,
    }),
    purpose: 'payment',
    subjectId: ({ intentId }) => intentId,
    processing: processingPage,
    bank: {
      intentOf: ({ intentId }) => intentId,
      attemptOf: async ({ merchantId, intentId: own }, intentId) =>
        own === intentId ? latestAttempt(db, { merchantId, intentId }) : null,
      lookUp: ({ merchantId, intentId }) =>
        orders.recheck('payment', { merchantId, intentId, token: null }),
    },
    fillIn: (payment, given) => fillInPaymentDetails(db, payment, given),
    async opened(payment) {
      if (payment.openedAt !== null) return;
      const stream = await markPaymentOpened(db, payment, now());
      // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
      if (stream !== null) void webhooks.wakeStream(stream);
    },
  });
}

function paymentPage(request: PageRequest, payment: HostedPayment, nowAt: number): Page {
  const { merchantName: name, callbackUrl: doneUrl } = payment;
  const back = { name, url: leaveUrl(payment, nowAt) };
  const onward = { name, url: withFacts(payment, doneUrl, nowAt) };
  const { language, home } = request;
  const { say } = language;
  const amount = language.money(payment.amountMinor, payment.currency);
  const purchase = { productName: payment.description, merchantName: name };
  const receipt = payment.paid === null ? [] : paymentReceipt(language, payment.paid, purchase);
  switch (paymentStageOf(payment, nowAt)) {
    case 'open':
      return askPage(request, payment, nowAt);
    case 'atBank': {
      const action = <BankLink language={language} home={home} intentId={payment.intentId} />;
      return withBankAbove(language, askPage(request, payment, nowAt), { amount, action });
    }
    case 'locked':
      return lockedPage(language, back);
    case 'processing':
      return processingPage(language, home);
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

function askPage(request: PageRequest, payment: HostedPayment, nowAt: number): Page {
  return askPayer(request, {
    subject: payment,
    sale: { ...paymentSale(request, payment), cancelUrl: leaveUrl(payment, nowAt) },
    alert: declinedText(request.language, payment.attempt, payment.lastErrorCode),
    button: 'continueToPayment',
  });
}

function leaveUrl(payment: HostedPayment, nowAt: number): string | null {
  return withFacts(payment, payment.cancelUrl ?? payment.callbackUrl, nowAt);
}

type Order = Pick<
  HostedPayment,
  'merchantName' | 'mode' | 'description' | 'amountMinor' | 'currency' | 'tokenise'
>;

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

/**
 * Computed from the intent, never stored. `processing`: the outcome of an attempt is unknown. `atBank`: the bank
 * waits for the payer. `locked`: too many cards were declined.
 */
type PaymentStage =
  | 'open'
  | 'locked'
  | 'processing'
  | 'atBank'
  | 'paid'
  | 'refunded'
  | 'expired'
  | 'cancelled';

export function paymentStageOf(payment: HostedPayment, nowAt: number): PaymentStage {
  switch (intentStatusAt(payment, nowAt)) {
    case 'CREATED':
    case 'FAILED':
      return payment.tries >= CARD_TRIES_MAX[payment.mode] ? 'locked' : 'open';
    case 'PENDING':
      return isAtBank(payment.attempt) ? 'atBank' : 'processing';
    case 'SUCCESS':
    case 'PARTIALLY_REFUNDED':
      return 'paid';
    case 'REFUNDED':
      return 'refunded';
    case 'CANCELLED':
      return payment.status === 'CANCELLED' ? 'cancelled' : 'expired';
  }
}
