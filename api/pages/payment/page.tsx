import {
  fillInPaymentDetails,
  findHostedPayment,
  markPaymentOpened,
} from '../../../db/repositories/payments/hosted.ts';
import type { HostedPayment } from '../../../db/repositories/payments/hosted.ts';
import type { Language } from '../../../domain/language/language.ts';
import {
  INTENT_PARAMETER,
  INTENT_PATH,
  paymentPath,
  readSessionToken,
} from '../../../runtime/payer-links.ts';
import { callbackUrl, endPage, unknownPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import { languageFor, seeOther, sendPage } from '../shared/page.tsx';
import type { Asked, CardStage, PageRoutes } from '../shared/card-page-kind.ts';
import { latestAttempt } from '../../../db/repositories/payments/shown-attempts.ts';
import { intentStatusAt } from '../../../domain/payment-intent.ts';
import { bankLink, declinedText, isAtBank } from '../shared/bank.tsx';
import type { PageRequest } from '../shared/card-page.tsx';
import type { Page } from '../shared/page.tsx';
import { paymentReceipt, productText } from '../shared/receipt.ts';
import type { SaleText } from '../shared/views.tsx';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';

export function paymentPageRoutes(routes: PageRoutes): void {
  const { router, deps, limits } = routes;
  const { db, now, orders, webhooks } = deps;

  router.get(INTENT_PATH, async (ctx) => {
    const intentId = String(ctx.query[INTENT_PARAMETER]);
    const payment = await limits.lookUp(ctx, () => findHostedPayment(db, intentId));
    if (payment === null) sendPage(deps, ctx, unknownPage(languageFor(ctx)));
    else seeOther(ctx, paymentPath(payment.intentId));
  });

  cardPageRoutes<HostedPayment>(routes, {
    pathOf: paymentPath,
    texts: { expired: 'paymentExpired' },
    find: (token) => findHostedPayment(db, readSessionToken(deps, token) ?? token),
    stageOf: (payment) => paymentStageOf(payment, now()),
    asked: askedOf,
    dueNow: ({ amountMinor, currency }) => ({ amountMinor, currency }),
    ownPage: (language, payment) =>
      paidPage(language, payment, withFacts(payment, payment.callbackUrl, now())),
    leaveUrl: (payment) => withFacts(payment, payment.cancelUrl ?? payment.callbackUrl, now()),
    isDecided: (payment) =>
      !['open', 'locked', 'processing', 'atBank'].includes(paymentStageOf(payment, now())),
    limitsOf: ({ tries, checkoutExpiresAt }) => ({
      tries,
      expiresAt: checkoutExpiresAt ?? Infinity,
    }),
    savedAction: ({ say }, _payment, card) => say('payWith', card),
    purpose: 'payment',
    subjectId: ({ intentId }) => intentId,
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

function askedOf(request: PageRequest, payment: HostedPayment): Asked {
  const { language } = request;
  const { attempt, lastErrorCode, intentId } = payment;
  const amount = amountOf(language, payment);
  return {
    sale: paymentSale(language, payment),
    alert: declinedText(language, attempt, lastErrorCode),
    button: 'continueToPayment',
    bank: isAtBank(attempt) ? { amount, action: bankLink(request, intentId) } : null,
  };
}

function paidPage(
  language: Language,
  { paid, merchantName: name, ...payment }: HostedPayment,
  url: string | null,
): Page {
  const { say } = language;
  const amount = amountOf(language, payment);
  const purchase = { ...productText(payment), merchantName: name };
  const receipt = paid === null ? [] : paymentReceipt(language, paid, purchase);
  const text =
    payment.status === 'REFUNDED'
      ? { title: say('refundedTitle'), texts: [say('refunded', { amount, name })] }
      : { title: say('paymentReceived'), texts: [say('paidTo', { amount, name })] };
  return endPage(language, 200, { ...text, receipt }, { name, url });
}

type ShownPayment = Pick<
  HostedPayment,
  'merchantName' | 'productPage' | 'description' | 'amountMinor' | 'currency' | 'tokenise'
>;

export function paymentSale(language: Language, payment: ShownPayment): SaleText {
  const { merchantName } = payment;
  const { say } = language;
  const amount = amountOf(language, payment);
  const { productName, productDescription } = productText(payment);
  return {
    merchantName,
    productName: productName ?? say('paymentTo', { name: merchantName }),
    productDescription,
    offer: {
      action: say('pay', { amount }),
      onceEntered: say('chargedOnceEntered', { amount }),
      lines: [{ label: say('toPayOnce'), text: amount, isSum: true }],
    },
    consent: payment.tokenise ? say('consentSavedCard', { name: merchantName }) : null,
  };
}

function amountOf(
  { money }: Language,
  { amountMinor, currency }: Pick<HostedPayment, 'amountMinor' | 'currency'>,
): string {
  return money(amountMinor, currency);
}

function withFacts(payment: HostedPayment, url: string | null, nowAt: number): string | null {
  if (url === null) return null;
  return callbackUrl(url, {
    [INTENT_PARAMETER]: payment.intentId,
    status: intentStatusAt(payment, nowAt),
    receipt_id: payment.receiptId,
  });
}

export function paymentStageOf(payment: HostedPayment, nowAt: number): CardStage {
  switch (intentStatusAt(payment, nowAt)) {
    case 'CREATED':
    case 'FAILED':
      return payment.tries >= CARD_TRIES_MAX[payment.mode] ? 'locked' : 'open';
    case 'PENDING':
      return isAtBank(payment.attempt) ? 'atBank' : 'processing';
    case 'SUCCESS':
    case 'PARTIALLY_REFUNDED':
    case 'REFUNDED':
      return 'done';
    case 'CANCELLED':
      return payment.status === 'CANCELLED' ? 'cancelled' : 'expired';
  }
}
