import type { ApiDeps } from '../../deps.ts';
import type { CardGateway } from './card-gateway.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { formToken } from './own-form.ts';
import { returnUrl } from './own-return.ts';
import { notice } from './page.tsx';
import type { Page } from './page.tsx';
import { CardPage, ConfirmPage, DetailsPage, EntryPage } from './views.tsx';
import type { DetailsField, Sale } from './views.tsx';

export type PageDeps = Pick<ApiDeps, 'publicUrl' | 'sessionKey'> & {
  /** The gateway of a page that asks for a card; null if the merchant has none. */
  readonly gateway: CardGateway | null;
};

/** Seconds between two reloads while an outcome is unknown. */
const PROCESSING_REFRESH_S = 3;
/** Seconds for which the result is shown before the browser opens the merchant's URL. */
const RESULT_REFRESH_S = 5;

/** Shown for every declined card. The text never depends on the decline code. */
export const DECLINED_PAYMENT =
  'Your payment was declined and nothing was charged. Check the details and try again, or use ' +
  'another card.';

/** The path of the form that opens the gateway's page for a card. `home`: the path of our page. */
export const cardEntryPath = (home: string): string => `${home}/card`;

/** The test cards that a page shows; null in live mode. Rule: D-61. */
export function shownTestCards({ gateway }: Pick<PageDeps, 'gateway'>, mode: 'test' | 'live') {
  return mode === 'test' ? (gateway?.testCards ?? []) : null;
}

/**
 * Returns a page with the card form, or with a button that leads to the gateway's page for a card. `home`: the
 * page's path. `browser`: the id in the browser's cookie. `alert`: text about the last card, or null.
 */
export function askCard(
  deps: PageDeps,
  page: {
    home: string;
    browser: string;
    sessionId: string;
    sale: Sale;
    payerName: string | null | undefined;
    alert: string | null;
  },
): Page {
  const { home, browser, sessionId, sale, payerName, alert } = page;
  const { tokeniserUrl = null, company = '' } = deps.gateway ?? {};
  if (deps.gateway?.openCardEntry) {
    const entry = {
      action: cardEntryPath(home),
      formToken: formToken(deps.sessionKey, sessionId),
      company,
      alert,
    };
    const content = <EntryPage sale={sale} form={entry} />;
    return { status: 200, title: sale.productName, content };
  }
  if (tokeniserUrl === null) return noGatewayPage(sale);
  const form = {
    tokeniserUrl,
    session: sessionId,
    returnUrl: returnUrl(deps, home, browser),
    payerName: payerName ?? '',
    alert,
  };
  return {
    status: 200,
    title: sale.productName,
    formOrigin: new URL(tokeniserUrl).origin,
    content: <CardPage sale={sale} form={form} />,
  };
}

const DETAIL_LABELS = {
  name: 'Name',
  email: 'E-mail address',
  contactNumber: 'Phone number',
} as const;

/** The fields of a details form with the values that the payer has typed. */
export function detailsFields(names: readonly DetailName[], typed: TypedDetails): DetailsField[] {
  return names.map((name) => {
    const { value = '', problem = null } = typed.get(name) ?? {};
    return { name, label: DETAIL_LABELS[name], value, problem };
  });
}

/**
 * Returns the page with the details form. `home`: the page's path. `typed`: empty on the first visit. Rule:
 * D-11.
 */
export function askDetails(
  deps: PageDeps,
  page: {
    home: string;
    sessionId: string;
    sale: Sale;
    names: readonly DetailName[];
    typed: TypedDetails;
    button?: string;
  },
): Page {
  const { home, sessionId, sale, names, typed, button } = page;
  if (deps.gateway === null) return noGatewayPage(sale);
  return {
    status: typed.size > 0 ? 400 : 200,
    title: sale.productName,
    content: (
      <DetailsPage
        sale={sale}
        action={home}
        formToken={formToken(deps.sessionKey, sessionId)}
        fields={detailsFields(names, typed)}
        {...(button === undefined ? {} : { button })}
      />
    ),
  };
}

/** Title and paragraphs of a page without a form. */
export interface PageText {
  readonly title: string;
  readonly texts: readonly string[];
}

/** The page with the result. If `onward.url` is set, the browser opens it after 5 s. Rule: D-44. */
export function resultPage(
  { title, texts }: PageText,
  onward: { name: string; url: string | null },
) {
  if (onward.url === null) return notice(200, title, texts);
  const { name, url } = onward;
  const page = notice(200, title, texts, { href: url, text: `Continue to ${name}` });
  return { ...page, refresh: { seconds: RESULT_REFRESH_S, url } };
}

/** The page that is shown instead of a form. `texts` give the reason. */
export function closedPage(
  status: 403 | 409 | 410,
  { title, texts }: PageText,
  back: { name: string; url: string | null },
): Page {
  const { name, url } = back;
  const link = url === null ? undefined : { href: url, text: `Return to ${name}` };
  return notice(status, title, texts, link);
}

/**
 * The page after too many declined cards. The status is 403 and not 429, because a later retry does not
 * help: the payer needs a new link.
 */
export function lockedPage(back: { name: string; url: string | null }): Page {
  const texts = [
    'Too many cards were declined here, and nothing was charged. ' +
      `Ask ${back.name} for a new link if you want to try again.`,
  ];
  return closedPage(403, { title: 'This page takes no more cards', texts }, back);
}

/** The page while the outcome of a card is unknown. The browser loads `url` every 3 s. */
export function processingPage(url: string, title = 'Your payment is being processed'): Page {
  return {
    ...notice(200, title, [
      'This page reloads every few seconds. You can leave it open or come back later: ' +
        'you will not be charged twice.',
    ]),
    refresh: { seconds: PROCESSING_REFRESH_S, url },
  };
}

/** The page of a merchant without a gateway. */
export function noGatewayPage({ merchantName, cancelUrl }: Sale): Page {
  const texts = [
    `${merchantName} cannot take cards yet. Nothing was charged. Ask ${merchantName} when to try again.`,
  ];
  return closedPage(
    409,
    { title: 'Cards cannot be entered here yet', texts },
    { name: merchantName, url: cancelUrl },
  );
}

/** The page that sends the browser to the gateway's page at once. The link is for browsers without refresh. */
export function leavePage(company: string, url: string): Page {
  const title = `Continue to ${company}`;
  const texts = [`You enter your card on a page of ${company}.`];
  return { ...notice(200, title, texts, { href: url, text: title }), refresh: { seconds: 0, url } };
}

/** The page that is shown if the gateway did not open its page for a card. Its button sends the request again. */
export function unopenedPage(
  deps: Pick<PageDeps, 'sessionKey'>,
  { home, sessionId, company }: { home: string; sessionId: string; company: string },
): Page {
  const title = 'Your card cannot be entered right now';
  const text = `The page of ${company} did not open. Nothing was charged, and nothing is lost. Try again in a moment.`;
  const form = {
    action: cardEntryPath(home),
    formToken: formToken(deps.sessionKey, sessionId),
    button: 'Try again',
  };
  return { status: 503, title, content: <ConfirmPage title={title} text={text} {...form} /> };
}

/** The page for an unknown token. */
export function unknownPage(name: string): Page {
  return notice(404, `There is no such ${name}`, [
    'The link is incomplete, or it was never valid. Nothing was charged.',
  ]);
}

/**
 * The page for a return from the tokeniser without the proof that this browser was shown the card form. Either
 * the browser keeps no cookies, or a foreign page sent it here. The card is submitted only when the payer
 * presses the page's button. `url`: the return URL.
 */
export function confirmReturnPage(
  deps: Pick<PageDeps, 'sessionKey'>,
  url: string,
  sessionId: string,
): Page {
  const title = 'One more step';
  const text = 'Nothing was charged yet. Continue to submit the card that you entered.';
  const token = formToken(deps.sessionKey, sessionId);
  return {
    status: 200,
    title,
    content: <ConfirmPage title={title} text={text} action={url} formToken={token} />,
  };
}

/** The page for a form that another site sent. */
export function foreignFormPage(home: string): Page {
  return notice(
    403,
    'This form is not valid any more',
    ['Open the page again. Nothing was charged.'],
    { href: home, text: 'Open the page' },
  );
}
