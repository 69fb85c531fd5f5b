import type { Checkout } from '../../../db/repositories/checkouts/sessions.ts';
import { formatAmount } from '../../../domain/money.ts';
import { nextPaymentAt } from '../../../domain/subscription/state.ts';
import type { Terms } from '../../../domain/subscription/state.ts';
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
import { dateText, offerOf } from './offer.ts';
import { stageOf } from './stage.ts';

/** Returns the page of a checkout in its present stage. `nowAt` is the result of `businessNow`. */
export function checkoutPage(
  deps: PageDeps,
  token: string,
  checkout: Checkout,
  nowAt: number,
  browser: string,
): Page {
  const name = checkout.merchantName;
  const back = { name, url: leaveUrl(checkout) };
  switch (stageOf(checkout, nowAt)) {
    case 'open':
      return missingDetails(checkout).length > 0
        ? detailsPage(deps, token, checkout, nowAt, new Map())
        : cardPage(deps, token, checkout, nowAt, browser);
    case 'locked':
      return lockedPage(back);
    case 'processing':
      return processingPage(pagePath(token));
    case 'done':
      // The link to `callbackUrl` contains the subscription's present status. Rule: D-44.
      return resultPage(resultText(checkout), {
        name,
        url: checkout.callbackUrl === null ? null : withFacts(checkout, checkout.callbackUrl),
      });
    case 'expired': {
      const texts = [`Nothing was charged. Ask ${name} for a new link if you still want it.`];
      return closedPage(410, { title: 'This checkout has expired', texts }, back);
    }
    case 'cancelled': {
      const texts = ['Nothing was charged, and nothing will be.'];
      return closedPage(410, { title: 'This checkout was cancelled', texts }, back);
    }
  }
}

export function pagePath(token: string): string {
  return `/checkout/${token}`;
}

function cardPage(
  deps: PageDeps,
  token: string,
  checkout: Checkout,
  nowAt: number,
  browser: string,
): Page {
  return askCard(deps, {
    home: pagePath(token),
    browser,
    sessionId: checkout.sessionId,
    sale: saleOf(deps, checkout, nowAt),
    payerName: knownDetails(checkout).name,
    alert: checkout.lastErrorCode === null ? null : DECLINED_PAYMENT,
  });
}

/** `typed` is empty on the first visit. */
export function detailsPage(
  deps: PageDeps,
  token: string,
  checkout: Checkout,
  nowAt: number,
  typed: TypedDetails,
): Page {
  return askDetails(deps, {
    home: pagePath(token),
    sessionId: checkout.sessionId,
    sale: saleOf(deps, checkout, nowAt),
    names: missingDetails(checkout),
    typed,
  });
}

function saleOf(deps: PageDeps, checkout: Checkout, nowAt: number): Sale {
  const sale = saleFrom(deps, checkout, checkout.state.terms, nowAt);
  return { ...sale, cancelUrl: leaveUrl(checkout) };
}

type Order = Pick<Checkout, 'merchantName' | 'mode' | 'productPage' | 'description'>;

/** Returns the product, the merchant and the offer for a payer who pays at `nowAt`. Rules: IF-2.8, IF-2.3. */
export function saleFrom(
  deps: Pick<PageDeps, 'gateway'>,
  order: Order,
  terms: Terms,
  nowAt: number,
): Sale {
  const { productPage, description } = order;
  const name = productPage?.name;
  return {
    merchantName: order.merchantName,
    productName: name ?? description ?? 'Subscription',
    productDescription: productPage?.description ?? (name === undefined ? null : description),
    offer: offerOf(terms, nowAt),
    cancelUrl: null,
    testCards: shownTestCards(deps, order.mode),
  };
}

function resultText({ state }: Checkout): { title: string; texts: string[] } {
  const amount = formatAmount(state.terms.amountMinor, state.terms.currency);
  const nextAt = nextPaymentAt(state);
  if (state.status === 'TRIALING' && nextAt !== null) {
    return {
      title: 'Your free trial has started',
      texts: [`Nothing was charged today. The first payment is ${amount} on ${dateText(nextAt)}.`],
    };
  }
  if (state.status === 'ACTIVE' && nextAt !== null) {
    return {
      title: 'Thank you: your payment was received',
      texts: [`The next payment is ${amount} on ${dateText(nextAt)}.`],
    };
  }
  if (state.endReason === 'completed') {
    return {
      title: 'Thank you: your payment was received',
      texts: ['This was the last payment. Nothing more will be charged.'],
    };
  }
  if (state.status === 'ENDED' && state.cyclesCharged > 0) {
    const payments =
      state.cyclesCharged === 1 ? '1 payment was' : `${state.cyclesCharged} payments were`;
    return {
      title: 'This subscription has ended',
      texts: [`${payments} received. Nothing more will be charged.`],
    };
  }
  return { title: 'This checkout is complete', texts: ['There is nothing more to do here.'] };
}

/** Returns the URL of the cancel link: `cancelUrl`, else `callbackUrl`. Rule: IF-4.3. */
function leaveUrl(checkout: Checkout): string | null {
  const url = checkout.cancelUrl ?? checkout.callbackUrl;
  return url === null ? null : withFacts(checkout, url);
}

function withFacts({ subscriptionId, state, receiptId }: Checkout, url: string): string {
  return callbackUrl(url, {
    subscription_id: subscriptionId,
    status: state.status,
    receipt_id: receiptId,
  });
}
