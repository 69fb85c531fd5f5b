import type { ApiDeps } from '../../deps.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { formToken } from './own-form.ts';
import { notice } from './page.tsx';
import type { Page } from './page.tsx';
import { CardPage, DetailsPage } from './views.tsx';
import type { DetailsField, Sale } from './views.tsx';

/** What pages need of the process. */
export type PageDeps = Pick<ApiDeps, 'publicUrl' | 'sessionKey' | 'testCards' | 'tokeniserUrl'>;

/** Between looks at something that is being processed. */
const PROCESSING_REFRESH_S = 3;
/** Time to read the result before the browser goes on to the merchant. */
const RESULT_REFRESH_S = 5;

/** The one text for every card that was not taken, whatever the reason. Rule: reliability §4. */
export const DECLINED_PAYMENT =
  'Your payment was declined and nothing was charged. Check the details and try again, or use ' +
  'another card.';

/** The card form of the page at `home`. `alert`: of the last card, or null. */
export function askCard(
  deps: PageDeps,
  page: {
    home: string;
    sessionId: string;
    sale: Sale;
    payerName: string | null | undefined;
    alert: string | null;
  },
): Page {
  const { home, sessionId, sale, payerName, alert } = page;
  const form = {
    tokeniserUrl: deps.tokeniserUrl,
    session: sessionId,
    returnUrl: `${deps.publicUrl}${home}/return`,
    payerName: payerName ?? '',
    alert,
  };
  return { status: 200, title: sale.productName, content: <CardPage sale={sale} form={form} /> };
}

const DETAIL_LABELS = {
  name: 'Name',
  email: 'E-mail address',
  contactNumber: 'Phone number',
} as const;

/** The fields of a details form, as typed so far. */
export function detailsFields(names: readonly DetailName[], typed: TypedDetails): DetailsField[] {
  return names.map((name) => {
    const { value = '', problem = null } = typed.get(name) ?? {};
    return { name, label: DETAIL_LABELS[name], value, problem };
  });
}

/** The details form of the page at `home`; `typed` is empty the first time. Rule: D-11. */
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

/** Texts of a page on which nothing can be done any more, and where it leads on to. */
export interface Said {
  readonly title: string;
  readonly texts: readonly string[];
}

/** How it ended; the browser goes on to the merchant by itself, where there is a way. Rule: D-44. */
export function resultPage({ title, texts }: Said, onward: { name: string; url: string | null }) {
  if (onward.url === null) return notice(200, title, texts);
  const { name, url } = onward;
  const page = notice(200, title, texts, { href: url, text: `Continue to ${name}` });
  return { ...page, refresh: { seconds: RESULT_REFRESH_S, url } };
}

/** Why nothing can be done here. */
export function closedPage(
  status: 403 | 409 | 410,
  { title, texts }: Said,
  back: { name: string; url: string | null },
): Page {
  const { name, url } = back;
  const link = url === null ? undefined : { href: url, text: `Return to ${name}` };
  return notice(status, title, texts, link);
}

/**
 * After too many declined cards. 403 and not 429: waiting does not open it again, only a new link
 * does. Rule: reliability §4.
 */
export function lockedPage(back: { name: string; url: string | null }): Page {
  const texts = [
    'Too many cards were declined here, and nothing was charged. ' +
      `Ask ${back.name} for a new link if you want to try again.`,
  ];
  return closedPage(403, { title: 'This page takes no more cards', texts }, back);
}

/** While nobody knows yet what came of a card; `url` is asked again. */
export function processingPage(url: string, title = 'Your payment is being processed'): Page {
  return {
    ...notice(200, title, [
      'This page looks again by itself every few seconds. You can leave it open or come back later: ' +
        'you will not be charged twice.',
    ]),
    refresh: { seconds: PROCESSING_REFRESH_S, url },
  };
}

/** For a token that opens nothing. */
export function unknownPage(what: string): Page {
  return notice(404, `There is no such ${what}`, [
    'The link is incomplete, or it was never valid. Nothing was charged.',
  ]);
}

/** For a form that is not from our page. */
export function foreignFormPage(home: string): Page {
  return notice(
    403,
    'This form is not valid any more',
    ['Open the page again. Nothing was charged.'],
    { href: home, text: 'Open the page' },
  );
}
