import type { MistypeText } from '../parts/card-form.tsx';
import type { Language } from '../parts/language.ts';
import { CARD_SCRIPT } from '../parts/scripts.tsx';
import type { ApiDeps } from '../../deps.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { PaymentGateway } from '../../../gateways/port.ts';
import { CHANGE_EMAIL, hasProblem, knownDetails } from './details-form.ts';
import type { DetailName, Payer, TypedDetails } from './details-form.ts';
import { formToken, returnUrl } from './own-requests.ts';
import { notice } from './page.tsx';
import type { Page } from './page.tsx';
import { CardPage, ConfirmPage, DetailsPage, EntryPage } from './views.tsx';
import type { DetailsField, ListRow, Sale } from './views.tsx';

/** Cards are entered in our form, which posts to `tokeniserUrl`, or on the page that `openCardEntry` opens. */
export type CardGateway = Pick<
  PaymentGateway,
  'name' | 'company' | 'tokeniserUrl' | 'testCards' | 'openCardEntry'
>;

/** Null if the merchant has none, so that no page can take a card. */
export async function cardGatewayOf(
  { gateways }: Pick<ApiDeps, 'gateways'>,
  merchantId: string,
): Promise<CardGateway | null> {
  try {
    return await gateways.forNewMethods(merchantId);
  } catch (error) {
    if (error instanceof DomainError && error.code === 'operation_not_allowed') return null;
    throw error;
  }
}

export type PageDeps = Pick<ApiDeps, 'publicUrl' | 'sessionKey'> & {
  /** The gateway of a page that asks for a card; null if the merchant has none. */
  readonly gateway: CardGateway | null;
  readonly language: Language;
};

export interface PageRequest extends PageDeps {
  /** The path of the page. */
  readonly home: string;
  /** The id in the browser's cookie. */
  readonly browser: string;
  /** The details that the page asks for before the card. */
  readonly names: readonly DetailName[];
  /** The details form that was sent; empty without one. */
  readonly typed: TypedDetails;
  /** The typing errors of the card that the gateway has just sent back. */
  readonly mistypes: readonly MistypeText[];
}

/** Seconds between two requests of a waiting page for the outcome. */
const PROCESSING_REFRESH_S = 3;

export const cardEntryPath = (home: string): string => `${home}/card`;

export function shownTestCards({ gateway }: Pick<PageDeps, 'gateway'>, mode: 'test' | 'live') {
  return mode === 'test' ? (gateway?.testCards ?? []) : null;
}

interface Asked {
  readonly subject: Payer & { readonly sessionId: string };
  readonly sale: Sale;
  readonly alert: string | null;
  /** Key of the text of the button below the details that are missing. Null: the page asks for a card at once. */
  readonly button: 'continueToPayment' | 'continueToYourCard' | null;
}

/** Asks for the missing details; else for the card, on our page or the gateway's. */
export function askPayer(request: PageRequest, asked: Asked): Page {
  const { subject, sale, button } = asked;
  if (request.gateway === null) return noGatewayPage(sale);
  const { home, sessionKey, names, typed } = request;
  if (button === null || names.length === 0) return askCard(request, request.gateway, asked);
  const { language } = sale;
  const known = knownDetails(subject);
  return {
    language,
    status: 200,
    title: detailsTitle(sale, typed),
    content: (
      <DetailsPage
        sale={sale}
        action={known.email && names.includes('email') ? changePath(home) : home}
        formToken={formToken(sessionKey, subject.sessionId)}
        fields={detailsFields(language, names, typed, known)}
        button={language.say(button)}
      />
    ),
  };
}

const changePath = (home: string): string => `${home}?${CHANGE_EMAIL}`;

function askCard(
  request: PageRequest,
  gateway: CardGateway,
  { subject, sale, alert, button }: Asked,
): Page {
  const { home, browser, sessionKey, mistypes } = request;
  const { tokeniserUrl, company, openCardEntry } = gateway;
  const page = { language: sale.language, status: 200, title: sale.productName };
  const { email } = subject.customerDetails;
  const given = email && button !== null ? { email, changePath: changePath(home) } : null;
  if (openCardEntry) {
    const entry = {
      action: cardEntryPath(home),
      formToken: formToken(sessionKey, subject.sessionId),
      company,
      alert,
      given,
    };
    return { ...page, content: <EntryPage sale={sale} {...entry} /> };
  }
  if (tokeniserUrl === null) return noGatewayPage(sale);
  const isMistyped = mistypes.length > 0;
  const { say } = sale.language;
  const form = {
    mistypes,
    tokeniserUrl,
    session: subject.sessionId,
    returnUrl: returnUrl(request, home, browser),
    payerName: knownDetails(subject).name ?? '',
    alert: isMistyped ? say('correctFields') : alert,
    given,
  };
  return {
    ...page,
    title: isMistyped ? say('errorTitle', { title: page.title }) : page.title,
    formOrigin: new URL(tokeniserUrl).origin,
    script: CARD_SCRIPT,
    content: <CardPage sale={sale} {...form} />,
  };
}

const DETAIL_LABELS = { name: 'name', email: 'email', contactNumber: 'phone' } as const;

/** Returns the fields of a details form with the values that the payer typed, or that are known. The first wrong field has the focus. */
export function detailsFields(
  { say }: Language,
  names: readonly DetailName[],
  typed: TypedDetails,
  known: CustomerDetails = {},
): DetailsField[] {
  const wrong = names.find((name) => typed.get(name)?.problem);
  return names.map((name) => {
    const { value = known[name] ?? '', problem = null } = typed.get(name) ?? {};
    const label = say(DETAIL_LABELS[name]);
    return { name, label, value, problem: problem && say(problem), hasFocus: name === wrong };
  });
}

/** Returns the title of a page with a details form. The title begins with the word for an error if a field is wrong. */
export function detailsTitle({ language, productName }: Sale, typed: TypedDetails): string {
  return hasProblem(typed) ? language.say('errorTitle', { title: productName }) : productName;
}

export interface PageText {
  readonly title: string;
  readonly texts: readonly string[];
  readonly receipt?: readonly ListRow[];
}

export interface MerchantUrl {
  readonly name: string;
  readonly url: string | null;
}

/** Does not redirect: WCAG 2.2.1 forbids a time limit that the payer cannot extend. */
export function resultPage(
  language: Language,
  { title, texts, receipt }: PageText,
  { name, url }: MerchantUrl,
): Page {
  const link = url === null ? undefined : { href: url, text: language.say('continueTo', { name }) };
  return notice(language, 200, title, texts, link, receipt);
}

export function closedPage(
  language: Language,
  status: 403 | 409 | 410,
  { title, texts }: PageText,
  { name, url }: MerchantUrl,
): Page {
  const link = url === null ? undefined : { href: url, text: language.say('returnTo', { name }) };
  return notice(language, status, title, texts, link);
}

/** 403 and not 429, because a later retry does not help: the payer needs a new link. */
export function lockedPage(language: Language, back: MerchantUrl): Page {
  const texts = [language.say('locked', { name: back.name })];
  return closedPage(language, 403, { title: language.say('lockedTitle'), texts }, back);
}

export function processingPage(
  language: Language,
  url: string,
  title: 'processingPayment' | 'savingCard' = 'processingPayment',
): Page {
  const page = notice(language, 200, language.say(title), [language.say('pageUpdates')]);
  return { ...page, wait: { seconds: PROCESSING_REFRESH_S, url } };
}

export function noGatewayPage({ language, merchantName: name, cancelUrl }: Sale): Page {
  const texts = [language.say('noGateway', { name })];
  const text = { title: language.say('noGatewayTitle'), texts };
  return closedPage(language, 409, text, { name, url: cancelUrl });
}

/** The link is for browsers without refresh. */
export function leavePage(language: Language, company: string, url: string): Page {
  const title = language.say('continueTo', { name: company });
  const texts = [language.say('enterAtCompanyNow', { company })];
  const page = notice(language, 200, title, texts, { href: url, text: title });
  return { ...page, refresh: { seconds: 0, url } };
}

/** The button repeats the request. */
export function unopenedPage(
  { sessionKey, language }: Pick<PageDeps, 'sessionKey' | 'language'>,
  { home, sessionId, company }: { home: string; sessionId: string; company: string },
): Page {
  const title = language.say('entryFailedTitle');
  const form = {
    text: language.say('entryFailed', { company }),
    action: cardEntryPath(home),
    formToken: formToken(sessionKey, sessionId),
    button: language.say('tryAgain'),
  };
  return { language, status: 503, title, content: <ConfirmPage title={title} {...form} /> };
}

export function unknownPage(
  language: Language,
  title: 'unknownCheckout' | 'unknownPayment' | 'unknownSetup' | 'unknownUpdate',
): Page {
  return notice(language, 404, language.say(title), [language.say('unknownLink')]);
}

/** For a return without `isOwnReturn`. The page's button submits the card at `url`. */
export function confirmReturnPage(
  { sessionKey, language }: Pick<PageDeps, 'sessionKey' | 'language'>,
  url: string,
  sessionId: string,
): Page {
  const title = language.say('confirmTitle');
  const form = {
    text: language.say('confirm'),
    action: url,
    formToken: formToken(sessionKey, sessionId),
    button: language.say('continue'),
  };
  return { language, status: 200, title, content: <ConfirmPage title={title} {...form} /> };
}

export function foreignFormPage(language: Language, home: string): Page {
  const link = { href: home, text: language.say('openPage') };
  const texts = [language.say('foreignForm')];
  return notice(language, 403, language.say('foreignFormTitle'), texts, link);
}

/** Appends the facts that are not null as unsigned parameters, which prove no payment. */
export function callbackUrl(
  merchantUrl: string,
  facts: Readonly<Record<string, string | null>>,
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(facts)) {
    if (value !== null) parameters.set(name, value);
  }
  const [address = '', ...fragment] = merchantUrl.split('#');
  const separator = !address.includes('?') ? '?' : /[?&]$/.test(address) ? '' : '&';
  const suffix = fragment.length === 0 ? '' : `#${fragment.join('#')}`;
  return `${address}${separator}${parameters.toString()}${suffix}`;
}
