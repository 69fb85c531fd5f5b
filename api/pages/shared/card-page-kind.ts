import type { ComponentChildren } from 'preact';
import type { Router } from '@koa/router';
import type { SessionRef } from '../../../db/repositories/checkouts/tries.ts';
import type { MerchantSettings } from '../../../db/schema/merchants.ts';
import type { Locale } from '../../../domain/locales.ts';
import type { Language } from '../../../domain/language/language.ts';
import type { CardPage } from '../../../temporal/cards.ts';
import type { AskedCard, PageRequest } from './card-page.tsx';
import type { SaleText } from './views.tsx';
import type { DetailName, Payer } from './details-form.ts';
import type { Page } from './page.tsx';
import type { ShownAttempt } from '../../../db/repositories/payments/shown-attempts.ts';
import { pathParam } from '../../http/request.ts';
import type { Context, RequestState } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { foreignFormPage, unknownPage } from './card-page.tsx';
import { languageFor, sendPage } from './page.tsx';
import { isPrefetch } from './limits.ts';
import type { PageLimits } from './limits.ts';
import { CARD_TRIES_MAX } from '../../../domain/payment-method.ts';
import { isOwnForm, readForm } from './own-requests.ts';

/** The data of a payment, subscription or setup session that its page with a card form needs. */
export interface CardSubject extends SessionRef, Payer {
  readonly customerId: string;
  /** The locale that the merchant chose for the page; null: the `Accept-Language` of the request decides. */
  readonly locale: Locale | null;
  readonly mode: 'test' | 'live';
  readonly merchantName: string;
  readonly merchantSettings: Pick<MerchantSettings, 'branding'>;
}

/**
 * Computed from the records, never stored. `open`: the page asks for details or a card. `atBank`: the bank waits for
 * the payer, who may give another card. `locked`: too many cards were declined. `processing`: the outcome of a card is
 * unknown.
 */
export type CardStage =
  | 'open'
  | 'atBank'
  | 'locked'
  | 'processing'
  | 'expired'
  | 'cancelled'
  | OwnStage;

/** The stages whose page depends on its kind. */
export type OwnStage = 'done' | 'saved' | 'paid' | 'kept' | 'closed';

/** What the page says while the bank waits for the payer. */
export interface BankConfirmation {
  readonly amount: string;
  readonly alert?: string | null;
  readonly action: ComponentChildren;
}

/** What a page says while it asks for details or a card. */
export interface Asked extends Pick<AskedCard, 'alert' | 'again' | 'button'> {
  readonly sale: SaleText;
  readonly bank?: BankConfirmation | null;
}

/** One kind of hosted page with a card form. `Subject`: the page's payment, subscription or setup session. */
export interface CardPages<Subject extends CardSubject> {
  pathOf(token: string): string;
  /** Keys of the page's texts. */
  readonly texts: {
    readonly expired: 'paymentExpired' | 'setupExpired' | 'askMerchant';
    readonly processing?: 'savingCard';
  };
  find(token: string): Promise<Subject | null>;
  stageOf(subject: Subject): CardStage;
  asked(request: PageRequest, subject: Subject): Asked;
  /** The page of a stage that only this kind of page has, or words in its own way. */
  ownPage(language: Language, subject: Subject, stage: OwnStage): Page;
  /** Returns the amount that is charged as soon as the payer gives a card. Absent, null: none. */
  dueNow?(subject: Subject): Due | null;
  /** Where the payer's browser goes from a page that takes no card, and when the payer cancels. Null: nowhere. */
  leaveUrl(subject: Subject): string | null;
  /** The address of the outcome of a card. Absent: the page's own. */
  outcomeOf?(home: string): string;
  /** Returns the path of the session that begins when the page is opened; null if this session goes on. */
  next?(subject: Subject): Promise<string | null>;
  /** True if the outcome is final, so that no other card is accepted. */
  isDecided(subject: Subject): boolean;
  /** Returns the number of cards tried, and the real time after which the page takes no card. */
  limitsOf(subject: Subject): { tries: number; expiresAt: number };
  /** Returns the words of the button for a saved card. Absent: the page offers none. */
  savedAction?(
    language: Language,
    subject: Subject,
    card: { readonly brand: string; readonly digits: string },
  ): string;
  readonly purpose: CardPage['purpose'];
  subjectId(subject: Subject): string;
  /** The bank to which a charge may lead. Absent if nothing is charged on the page. */
  readonly bank?: BankStep<Subject>;
  /** Stores the details of the form before the card form. Absent if the page has no such form. */
  fillIn?(subject: Subject, given: Partial<Record<DetailName, string>>): Promise<void>;
  /** Called when a browser opens the page while it asks for a card. Not called for a HEAD or a prefetch request. */
  opened?(subject: Subject): Promise<void>;
  /** Called before the gateway's page is opened, and before a new card is counted as a try. */
  beforeTry?(subject: Subject): Promise<void>;
  /** Called after a card was declined and the decline was counted. */
  afterDecline?(subject: Subject): Promise<void>;
}

export interface Due {
  readonly amountMinor: number;
  readonly currency: string;
}

/** The amount that is charged to a card of the page; null if nothing is. */
export function amountOf<Subject extends CardSubject>(
  pages: Pick<CardPages<Subject>, 'dueNow'>,
  { money }: Language,
  subject: Subject,
): string | null {
  const due = pages.dueNow?.(subject) ?? null;
  return due && money(due.amountMinor, due.currency);
}

export interface BankStep<Subject> {
  /** Returns the intent that the page's payer pays now; null without one. */
  intentOf(subject: Subject): string | null;
  /** Returns the latest attempt on an intent of the subject; null without one, and for another intent. */
  attemptOf(subject: Subject, intentId: string): Promise<ShownAttempt | null>;
  lookUp(subject: Subject): Promise<void>;
  /** Returns the page with the outcome of a charge; null if the subject's page shows it. Absent: always null. */
  outcomeOf?(language: Language, subject: Subject, intentId: string): Promise<Page | null>;
}

export interface Opened<Subject> {
  readonly subject: Subject;
  readonly home: string;
  /** The address of the outcome of a card. */
  readonly outcome: string;
  readonly language: Language;
}

/** What the routes of a hosted page need. */
export interface PageRoutes {
  readonly router: Router<RequestState>;
  readonly deps: ApiDeps;
  readonly limits: PageLimits;
}

export type PageOpener<Subject extends CardSubject> = ReturnType<typeof createOpener<Subject>>;

export type CardRoutes<Subject extends CardSubject> = PageRoutes &
  PageOpener<Subject> & { readonly pages: CardPages<Subject> };

export function createOpener<Subject extends CardSubject>(
  deps: ApiDeps,
  limits: PageLimits,
  pages: CardPages<Subject>,
) {
  /** Returns the subject of the path's token. For an unknown token, answers and returns a null subject. */
  const open = async (ctx: Context) => {
    const token = pathParam(ctx, 'token');
    const subject = await limits.lookUp(ctx, () => pages.find(token));
    const language = languageFor(ctx, subject?.locale);
    if (subject === null) sendPage(deps, ctx, unknownPage(language));
    else {
      const { merchantId: id, merchantName: name, merchantSettings: settings } = subject;
      ctx.state.pageMerchant = { id, name, settings };
    }
    const home = pages.pathOf(token);
    return { token, subject, home, outcome: pages.outcomeOf?.(home) ?? home, language };
  };

  /** Reads a form of our own page. For an unknown token or a foreign form, answers and returns null. */
  const openForm = async (ctx: Context) => {
    const form = await readForm(ctx);
    const { token, subject, home, outcome, language } = await open(ctx);
    if (subject === null) return null;
    const isOwn = isOwnForm(deps, ctx, form, subject.sessionId);
    if (isOwn) return { token, subject, home, outcome, language, form };
    sendPage(deps, ctx, foreignFormPage(language, home));
    return null;
  };

  return { open, openForm };
}

/** True if the page shows a form for details or a card. */
export function asksForCard<Subject extends CardSubject>(
  { stageOf }: Pick<CardPages<Subject>, 'stageOf'>,
  subject: Subject,
): boolean {
  return ['open', 'atBank'].includes(stageOf(subject));
}

/** True if the page takes one more card. After the last one, and after its expiry, it may only wait for the bank. */
export function takesCard<Subject extends CardSubject>(
  pages: Pick<CardPages<Subject>, 'limitsOf'>,
  subject: Subject,
  nowAt: number,
): boolean {
  const { tries } = pages.limitsOf(subject);
  return tries < CARD_TRIES_MAX[subject.mode] && !isPastExpiry(pages, subject, nowAt);
}

export function isPastExpiry<Subject extends CardSubject>(
  { limitsOf }: Pick<CardPages<Subject>, 'limitsOf'>,
  subject: Subject,
  nowAt: number,
): boolean {
  return nowAt >= limitsOf(subject).expiresAt;
}

/** True for HEAD and prefetch requests, which do not count as an opening of the page. */
export function isPreview(ctx: Context): boolean {
  return ctx.method === 'HEAD' || isPrefetch(ctx);
}
