import type { Router } from '@koa/router';
import {
  fillInDetails,
  findCheckout,
  markOpened,
} from '../../../db/repositories/checkouts/sessions.ts';
import type { Checkout } from '../../../db/repositories/checkouts/sessions.ts';
import { checkoutPath, readSessionToken } from '../../../runtime/payer-links.ts';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { processingPage, unknownPage } from '../shared/card-page.tsx';
import { cardPageRoutes } from '../shared/card-pages.ts';
import type { PageLimits } from '../shared/limits.ts';
import { checkoutPage, businessNow, openedEvent, stageOf } from './page.tsx';
import { latestAttempt } from '../../../db/repositories/payments/shown-attempts.ts';

export function checkoutRoutes(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
): void {
  const { db, webhooks, workflows } = deps;
  const nowOf = (checkout: Checkout): number => businessNow(checkout, deps.now());

  cardPageRoutes<Checkout>(router, deps, limits, {
    pathOf: checkoutPath,
    unknown: (language) => unknownPage(language, 'unknownCheckout'),
    find: (token) => findCheckout(db, readSessionToken(deps, token) ?? token),
    show: (request, checkout) => checkoutPage(request, checkout, nowOf(checkout)),
    asks: (checkout) => ['open', 'atBank'].includes(stageOf(checkout, nowOf(checkout))),
    isDecided: ({ state }) => state.status !== 'CREATED',
    // `expiresAt` is real time. On a test clock `checkoutExpiresAt` is the clock's time, so it sets no limit here.
    limitsOf: ({ tries, state, clockReachedAt }) => ({
      tries,
      expiresAt: clockReachedAt === null ? state.checkoutExpiresAt : Infinity,
    }),
    purpose: 'subscription',
    subjectId: ({ subscriptionId }) => subscriptionId,
    processing: processingPage,
    bank: {
      intentOf: ({ state }) => state.owed?.intentId ?? null,
      attemptOf: async ({ merchantId, state }, intentId) =>
        state.owed?.intentId === intentId ? latestAttempt(db, { merchantId, intentId }) : null,
      lookUp: ({ merchantId, subscriptionId }) => workflows.recheck({ merchantId, subscriptionId }),
    },
    fillIn: (checkout, given) => fillInDetails(db, checkout, given),
    /**
     * Emits `intent.checkout_opened` at the first opening, or `subscription.checkout_opened` if no cycle is owed.
     *
     */
    async opened(checkout) {
      if (checkout.openedAt !== null) return;
      const nowAt = nowOf(checkout);
      const isFirst = await markOpened(db, checkout, openedEvent(checkout, nowAt), nowAt);
      const { merchantId, subscriptionId: streamId } = checkout;
      // Not awaited. If the wake-up fails, the maintenance sweep wakes the endpoint queue.
      if (isFirst) void webhooks.wakeStream({ merchantId, streamId });
    },
  });
}
