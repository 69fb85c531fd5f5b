import type { ComponentChildren } from 'preact';
import type { MistypeText } from '../../../domain/payment-method.ts';
import type { Language } from '../../../domain/language/language.ts';
import { CARD_SCRIPT } from '../parts/scripts.tsx';
import type { ApiDeps } from '../../deps.ts';
import type { CustomerDetails } from '../../../domain/customer.ts';
import { DomainError } from '../../../domain/errors.ts';
import type { PaymentGateway } from '../../../gateways/port.ts';
import { CHANGE_EMAIL, hasProblem, knownDetails, shownDetails } from './details-form.ts';
import type { DetailName, Payer, TypedDetails } from './details-form.ts';
import { formToken, returnUrl } from './own-requests.ts';
import { asError, notice } from './page.tsx';
import type { Page } from './page.tsx';
import { CardPage, ConfirmPage, DetailsPage, EntryPage } from './views.tsx';
import type { DetailsField, ListRow, Sale, SaleText } from './views.tsx';

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

export function saleOf(
  { gateway, language }: Pick<PageDeps, 'gateway' | 'language'>,
  mode: 'test' | 'live',
  text: SaleText,
  cancelUrl: string | null,
): Sale {
  const testCards = mode === 'test' ? (gateway?.testCards ?? []) : null;
  return { ...text, language, cancelUrl, testCards };
}

export interface AskedCard {
  readonly subject: Payer & { readonly sessionId: string };
  readonly sale: Sale;
  readonly alert: string | null;
  /** A form that pays with the saved card. Absent, null: none. */
  readonly again?: ComponentChildren;
  /** Key of the text of the button below the details that are missing. Null: the page asks for a card at once. */
  readonly button: 'continueToPayment' | 'continueToYourCard' | null;
}

/** Asks for the missing details; else for the card, on our page or the gateway's. */
export function askPayer(request: PageRequest, asked: AskedCard): Page {
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
  { subject, sale, alert, again = null, button }: AskedCard,
): Page {
  const { home, browser, sessionKey, mistypes } = request;
  const { tokeniserUrl, company, openCardEntry } = gateway;
  const plain: Omit<Page, 'content'> = {
    language: sale.language,
    status: 200,
    title: sale.productName,
  };
  const isMistyped = mistypes.length > 0;
  const page = alert === null && !isMistyped ? plain : asError(plain);
  const { email } = subject.customerDetails;
  const given = email && button !== null ? { email, changePath: changePath(home) } : null;
  if (openCardEntry) {
    const entry = {
      action: cardEntryPath(home),
      formToken: formToken(sessionKey, subject.sessionId),
      company,
      alert,
      again,
      given,
    };
    return { ...page, content: <EntryPage sale={sale} {...entry} /> };
  }
  if (tokeniserUrl === null) return noGatewayPage(sale);
  const { say } = sale.language;
  const form = {
    mistypes,
    tokeniserUrl,
    session: subject.sessionId,
    returnUrl: returnUrl(request, home, browser),
    payerName: shownDetails(subject).name ?? '',
    alert: isMistyped ? say('correctFields') : alert,
    again,
    given,
  };
  return {
    ...page,
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

/** With 200 a result. Does not redirect: WCAG 2.2.1 forbids a time limit that the payer cannot extend. */
export function endPage(
  language: Language,
  status: 200 | 403 | 409 | 410,
  { title, texts, receipt }: PageText,
  { name, url }: MerchantUrl,
): Page {
  const text = language.say(status === 200 ? 'continueTo' : 'returnTo', { name });
  const link = url === null ? undefined : { href: url, text };
  return notice(language, status, title, texts, link, receipt);
}

/** `amount`: null if nothing is charged. */
export function processingPage(
  language: Language,
  url: string,
  amount: string | null,
  title: 'processingPayment' | 'savingCard' = 'processingPayment',
): Page {
  const { say } = language;
  const rows = amount === null ? [] : [{ label: say('amount'), text: amount, isSum: true }];
  const page = notice(language, 200, say(title), [say('pageUpdates')], undefined, rows);
  return { ...page, wait: { seconds: PROCESSING_REFRESH_S, url } };
}

export function noGatewayPage({ language, merchantName: name, cancelUrl }: Sale): Page {
  const texts = [language.say('noGateway', { name })];
  const text = { title: language.say('noGatewayTitle'), texts };
  return endPage(language, 409, text, { name, url: cancelUrl });
}

/**
 * Leads to another site. Not a redirect: Chromium applies `form-action` to the redirects after a form. The link is for
 * browsers without refresh.
 */
export function leavePage(language: Language, title: string, text: string, url: string): Page {
  const page = notice(language, 200, title, [text], { href: url, text: title });
  return { ...page, refresh: { seconds: 0, url } };
}

/** A page with one button, which posts to `action`. */
export function confirmPage(
  { sessionKey, language }: Pick<PageDeps, 'sessionKey' | 'language'>,
  status: 200 | 503,
  sessionId: string,
  form: Omit<Parameters<typeof ConfirmPage>[0], 'formToken'>,
): Page {
  const content = <ConfirmPage {...form} formToken={formToken(sessionKey, sessionId)} />;
  return { language, status, title: form.title, content };
}

export function unknownPage(language: Language): Page {
  return notice(language, 404, language.say('unknownPage'), [language.say('unknownLink')]);
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
