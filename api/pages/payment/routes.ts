import type { Router } from '@koa/router';
import {
  fillInPaymentDetails,
  findHostedPayment,
  markPaymentOpened,
} from '../../../db/repositories/payments/hosted.ts';
import type { HostedPayment } from '../../../db/repositories/payments/hosted.ts';
import type { Language } from '../parts/language.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  INTENT_PARAMETER,
  INTENT_PATH,
  paymentPath,
  readSessionToken,
} from '../../../runtime/payer-links.ts';
import { processingPage, unknownPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import { languageFor } from '../shared/language.ts';
import type { PageLimits } from '../shared/limits.ts';
import { seeOther, sendPage } from '../shared/page.tsx';
import { paymentPage, paymentStageOf } from './page.tsx';
import { latestAttempt } from '../../../db/repositories/payments/shown-attempts.ts';

/**
 * Registers the routes of the hosted page of a one-time payment. The path contains the page's token or the intent's
 * id.
 */
export function paymentPageRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
): void {
  const { db, now, orders, webhooks } = deps;
  const unknown = (language: Language) => unknownPage(language, 'unknownPayment');

  router.get(INTENT_PATH, async (ctx) => {
    const intentId = String(ctx.query[INTENT_PARAMETER]);
    const payment = await limits.lookUp(ctx, () => findHostedPayment(db, intentId));
    if (payment === null) sendPage(deps, ctx, unknown(languageFor(ctx)));
    else seeOther(ctx, paymentPath(payment.intentId));
  });

  cardPageRoutes<HostedPayment>(router, deps, limits, {
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
    /** Emits `intent.checkout_opened` at the first opening. */
    async opened(payment) {
      if (payment.openedAt !== null) return;
      const stream = await markPaymentOpened(db, payment, now());
      // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
      if (stream !== null) void webhooks.wakeStream(stream);
    },
  });
}
