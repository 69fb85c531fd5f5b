import type { Checkout } from '../../../db/repositories/checkout-sessions.ts';
import { formatAmount } from '../../../domain/money.ts';
import { nextPaymentAt } from '../../../domain/subscription/state.ts';
import type { Terms } from '../../../domain/subscription/state.ts';
import type { ApiDeps } from '../../deps.ts';
import { callbackUrl } from '../shared/callback-url.ts';
import { knownDetails, missingDetails, stageOf } from './stage.ts';
import { CardPage, DetailsPage } from '../shared/views.tsx';
import type { DetailsField, Sale } from '../shared/views.tsx';
import type { DetailName, TypedDetails } from '../shared/details-form.ts';
import { formToken } from '../shared/form-token.ts';
import { dateText, offerOf } from './offer.ts';
import { notice } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';

type Deps = Pick<ApiDeps, 'publicUrl' | 'sessionKey' | 'testCards' | 'tokeniserUrl'>;

/** Between looks at a payment that is being processed. */
const PROCESSING_REFRESH_S = 3;
/** Time to read the result before the browser goes on to the merchant. */
const RESULT_REFRESH_S = 5;

/** The page of a checkout as it stands. `nowAt` is business time. */
export function checkoutPage(deps: Deps, token: string, checkout: Checkout, nowAt: number): Page {
  switch (stageOf(checkout, nowAt)) {
    case 'open':
      return missingDetails(checkout).length > 0
        ? detailsPage(deps, token, checkout, nowAt, new Map())
        : cardPage(deps, token, checkout, nowAt);
    case 'processing':
      return processingPage(pagePath(token));
    case 'done':
      return resultPage(checkout);
    case 'expired':
      return notice(
        410,
        'This checkout has expired',
        [`Nothing was charged. Ask ${checkout.merchantName} for a new link if you still want it.`],
        leaveLink(checkout),
      );
    case 'cancelled':
      return notice(
        410,
        'This checkout was cancelled',
        ['Nothing was charged, and nothing will be.'],
        leaveLink(checkout),
      );
  }
}

/** For a token that opens nothing. */
export function unknownPage(): Page {
  return notice(404, 'There is no such checkout', [
    'The link is incomplete, or it was never valid. Nothing was charged.',
  ]);
}

/** For a form that is not from our page. */
export function foreignFormPage(token: string): Page {
  return notice(
    403,
    'This form is not valid any more',
    ['Open the checkout again. Nothing was charged.'],
    { href: pagePath(token), text: 'Open the checkout' },
  );
}

/** While nobody knows yet whether the payment went through; `url` is asked again. */
export function processingPage(url: string): Page {
  return {
    ...notice(200, 'Your payment is being processed', [
      'This page looks again by itself every few seconds. You can leave it open or come back later: ' +
        'you will not be charged twice.',
    ]),
    refresh: { seconds: PROCESSING_REFRESH_S, url },
  };
}

export function pagePath(token: string): string {
  return `/checkout/${token}`;
}

function cardPage(deps: Deps, token: string, checkout: Checkout, nowAt: number): Page {
  const sale = saleOf(deps, checkout, nowAt);
  const form = {
    tokeniserUrl: deps.tokeniserUrl,
    session: checkout.sessionId,
    returnUrl: `${deps.publicUrl}${pagePath(token)}/return`,
    payerName: knownDetails(checkout).name ?? '',
    isDeclined: checkout.lastErrorCode !== null,
  };
  return { status: 200, title: sale.productName, content: <CardPage sale={sale} form={form} /> };
}

const DETAIL_LABELS = {
  name: 'Name',
  email: 'E-mail address',
  contactNumber: 'Phone number',
} as const;

export function detailsPage(
  deps: Deps,
  token: string,
  checkout: Checkout,
  nowAt: number,
  typed: TypedDetails,
): Page {
  const sale = saleOf(deps, checkout, nowAt);
  const fields = detailsFields(missingDetails(checkout), typed);
  return {
    status: typed.size > 0 ? 400 : 200,
    title: sale.productName,
    content: (
      <DetailsPage
        sale={sale}
        action={pagePath(token)}
        formToken={formToken(deps.sessionKey, checkout.sessionId)}
        fields={fields}
      />
    ),
  };
}

/** The inputs of a details form, with what was typed before and what is wrong with it. */
export function detailsFields(names: readonly DetailName[], typed: TypedDetails): DetailsField[] {
  return names.map((name) => {
    const { value = '', problem = null } = typed.get(name) ?? {};
    return { name, label: DETAIL_LABELS[name], value, problem };
  });
}

function saleOf(deps: Deps, checkout: Checkout, nowAt: number): Sale {
  const { terms } = checkout.state;
  return { ...saleFrom(deps, checkout, terms, nowAt), cancelUrl: leaveUrl(checkout) };
}

/** What a merchant sells, from where there is no way back to the merchant yet. */
export function saleFrom(
  deps: Pick<Deps, 'testCards'>,
  order: Pick<Checkout, 'merchantName' | 'mode' | 'productPage' | 'description'>,
  terms: Terms,
  nowAt: number,
): Sale {
  const { merchantName, mode, productPage, description } = order;
  const name = productPage?.name;
  return {
    merchantName,
    productName: name ?? description ?? 'Subscription',
    productDescription: productPage?.description ?? (name === undefined ? null : description),
    offer: offerOf(terms, nowAt),
    cancelUrl: null,
    testCards: mode === 'test' ? deps.testCards : null,
  };
}

/** After COMPLETE the URL says how things stand, and leads on to the merchant. Rule: D-44. */
function resultPage(checkout: Checkout): Page {
  const { title, texts } = resultText(checkout);
  const url = checkout.callbackUrl === null ? null : withFacts(checkout, checkout.callbackUrl);
  if (url === null) return notice(200, title, texts);
  const page = notice(200, title, texts, {
    href: url,
    text: `Continue to ${checkout.merchantName}`,
  });
  return { ...page, refresh: { seconds: RESULT_REFRESH_S, url } };
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

function leaveLink(checkout: Checkout): { href: string; text: string } | undefined {
  const href = leaveUrl(checkout);
  return href === null ? undefined : { href, text: `Return to ${checkout.merchantName}` };
}

/** Rule: IF-4.3: `cancelUrl` defaults to `callbackUrl`. */
function leaveUrl(checkout: Checkout): string | null {
  const url = checkout.cancelUrl ?? checkout.callbackUrl;
  return url === null ? null : withFacts(checkout, url);
}

function withFacts({ subscriptionId, state, receiptId }: Checkout, url: string): string {
  return callbackUrl(url, { subscriptionId, status: state.status, receiptId });
}
