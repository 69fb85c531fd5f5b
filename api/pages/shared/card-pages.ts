import type { Context } from '../../http/request.ts';
import { bankRoutes, isAtBank, lookUp, withBankAbove } from './bank.tsx';
import {
  askPayer,
  cardGatewayOf,
  confirmPage,
  endPage,
  processingPage,
  saleOf,
} from './card-page.tsx';
import type { PageRequest } from './card-page.tsx';
import { entryRoutes, plainRequest, straightToGateway } from './card-entry.ts';
import { recordConsent } from './consent.ts';
import type {
  CardPages,
  CardRoutes,
  CardSubject,
  Opened,
  PageOpener,
  PageRoutes,
} from './card-page-kind.ts';
import {
  askedDetails,
  forgetDetails,
  hasProblem,
  keptDetails,
  missingDetails,
  readDetails,
  refuseDetails,
  valuesOf,
} from './details-form.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { browserOf, isOwnReturn } from './own-requests.ts';
import {
  amountOf,
  asksForCard,
  createOpener,
  isPastExpiry,
  isPreview,
  takesCard,
} from './card-page-kind.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';
import { mistypesIn } from '../parts/card-form.tsx';
import { admitTry, declineTry, findTry, tryKey } from '../../../db/repositories/checkouts/tries.ts';
import type { Language } from '../../../domain/language/language.ts';
import type { ApiDeps } from '../../deps.ts';
import type { CardOutcome } from '../../../domain/card-outcome.ts';
import { isDeclineCode } from '../../../domain/declines.ts';
import { bankPath } from '../../../runtime/payer-links.ts';
import { CARD_TRIES_MAX, savedCardToken } from '../../../domain/payment-method.ts';
import { pathParam } from '../../http/request.ts';
import { offeredCard, savedCardForm, savedCardPath } from './saved-card.tsx';
import type { PageLimits } from './limits.ts';
import { leaveBank } from '../../../db/repositories/payments/shown-attempts.ts';

/**
 * Registers the routes of one kind of card page: the page, its details form, the form to the gateway's page, and the
 * return URL. Returns the opener, for further routes. No card number reaches this server.
 */
export function cardPageRoutes<Subject extends CardSubject>(
  { router, deps, limits }: PageRoutes,
  pages: CardPages<Subject>,
): PageOpener<Subject> {
  const path = pages.pathOf(':token');
  const opener = createOpener(deps, limits, pages);
  const { open, openForm } = opener;

  const pageOf = async (
    ctx: Context,
    { subject, home, outcome, language }: Opened<Subject>,
    names: readonly DetailName[],
    typed: TypedDetails,
  ): Promise<Page> => {
    const isAsked = asksForCard(pages, subject);
    const gateway = isAsked ? await cardGatewayOf(deps, subject.merchantId) : null;
    const browser = browserOf(deps, ctx, home);
    const mistypes = mistypesIn(ctx.querystring);
    const request = { ...deps, gateway, language, home, browser, names, typed, mistypes };
    const card = await offeredCard(deps, pages, subject, gateway);
    const saved = savedCardForm(pages, request, subject, card);
    return stagePage(pages, request, { subject, outcome, nowAt: deps.now(), saved });
  };

  router.get(path, async (ctx) => {
    const { subject, home, outcome, language } = await open(ctx);
    if (subject === null) return;
    const next = ctx.url === outcome ? null : ((await pages.next?.(subject)) ?? null);
    if (next !== null) return seeOther(ctx, next);
    if (asksForCard(pages, subject)) {
      await limits.expectFewDeclines(ctx, subject);
      if (!isPreview(ctx)) await pages.opened?.(subject);
    }
    const names = pages.fillIn ? askedDetails(ctx, subject) : [];
    const straight = await straightToGateway({ deps, limits, pages }, ctx, {
      opened: { subject, home, outcome, language },
      names,
    });
    if (straight !== null) return sendPage(deps, ctx, straight);
    const typed = keptDetails(deps, ctx, home, names);
    sendPage(deps, ctx, await pageOf(ctx, { subject, home, outcome, language }, names, typed));
  });

  if (pages.fillIn) {
    router.post(path, async (ctx) => {
      const opened = await openForm(ctx);
      if (opened === null) return;
      const { subject, home, form } = opened;
      if (asksForCard(pages, subject)) {
        const names = askedDetails(ctx, subject);
        const typed = readDetails(form, names);
        if (hasProblem(typed)) {
          const page = await pageOf(ctx, opened, names, typed);
          return refuseDetails(deps, ctx, { home, typed, page });
        }
        await pages.fillIn?.(subject, valuesOf(typed));
      }
      forgetDetails(deps, ctx, home);
      seeOther(ctx, home);
    });
  }

  const routes = { router, deps, limits, pages, ...opener };
  entryRoutes(routes);
  returnRoutes(routes);
  bankRoutes(routes);
  return opener;
}

function stagePage<Subject extends CardSubject>(
  pages: CardPages<Subject>,
  request: PageRequest,
  {
    subject,
    outcome,
    nowAt,
    saved,
  }: { subject: Subject; outcome: string; nowAt: number; saved: ReturnType<typeof savedCardForm> },
): Page {
  const { language } = request;
  const { say } = language;
  const { merchantName: name } = subject;
  const back = { name, url: pages.leaveUrl(subject) };
  const stage = pages.stageOf(subject);
  switch (stage) {
    case 'open':
    case 'atBank': {
      const { sale: text, bank, ...asked } = pages.asked(request, subject);
      const sale = saleOf(request, subject.mode, text, back.url);
      if (!bank || takesCard(pages, subject, nowAt)) {
        const page = askPayer(request, { again: saved, ...asked, subject, sale });
        return bank ? withBankAbove(page, bank) : page;
      }
      return withBankAbove({ language, status: 200, title: sale.productName, content: null }, bank);
    }
    case 'locked': {
      // 403 and not 429, because a later retry does not help: the payer needs a new link.
      const text = { title: say('lockedTitle'), texts: [say('locked', { name })] };
      return endPage(language, 403, text, back);
    }
    case 'processing':
      return processingPage(language, outcome, amountOf(pages, language, subject));
    case 'expired': {
      const texts = [say(pages.texts.expired, { name })];
      return endPage(language, 410, { title: say('expiredTitle'), texts }, back);
    }
    case 'cancelled': {
      const text = { title: say('cancelledTitle'), texts: [say('nothingMoreCharged')] };
      return endPage(language, 410, text, back);
    }
    case 'done':
    case 'saved':
    case 'paid':
    case 'kept':
    case 'closed':
      return pages.ownPage(language, subject, stage);
  }
}

/** Format of a gateway's one-time tokens: at most 200 characters. */
const PAYMENT_TOKEN = /^[\w-]{1,200}$/;

/** Registers the return URL. The gateway redirects the payer's browser to it after the payer entered a card. */
function returnRoutes<Subject extends CardSubject>({
  router,
  deps,
  limits,
  pages,
  open,
  openForm,
}: CardRoutes<Subject>): void {
  const path = `${pages.pathOf(':token')}/return`;

  /** For a return without `isOwnReturn`. The page's button submits the card. */
  const confirmationOf = (ctx: Context, { sessionId }: Subject, language: Language): Page =>
    confirmPage({ ...deps, language }, 200, sessionId, {
      title: language.say('confirmTitle'),
      text: language.say('confirm'),
      button: language.say('continue'),
      action: ctx.url,
    });

  const finish = async (
    ctx: Context,
    { subject, home, outcome, language, isOwn }: Opened<Subject> & { isOwn: boolean },
    returned = readReturn(ctx.querystring),
  ): Promise<void> => {
    const mistypes = returned === null ? mistypesIn(ctx.querystring) : [];
    const changesNothing = returned === null || pages.isDecided(subject) || isPreview(ctx);
    const taken = changesNothing
      ? 'shown'
      : await takeCard(deps, limits, ctx, pages, { subject, home, language, returned, isOwn });
    const bank = await bankAfter(deps, pages, subject, taken);
    if (bank !== null) seeOther(ctx, bankPath(home, bank));
    else if (mistypes.length > 0) seeOther(ctx, `${home}?mistyped=${mistypes.join()}`);
    else if (taken === 'shown') seeOther(ctx, outcome);
    else if (taken === 'foreign') sendPage(deps, ctx, confirmationOf(ctx, subject, language));
    else {
      const amount = amountOf(pages, language, subject);
      sendPage(deps, ctx, processingPage(language, ctx.url, amount, pages.texts.processing));
    }
  };

  router.get(path, async (ctx) => {
    const { subject, ...page } = await open(ctx);
    if (subject === null) return;
    await finish(ctx, { ...page, subject, isOwn: isOwnReturn(deps, ctx, page.home) });
  });

  /** The form of that page, for example of a browser that keeps no cookies. */
  router.post(path, async (ctx) => {
    const opened = await openForm(ctx);
    if (opened !== null) await finish(ctx, { ...opened, isOwn: true });
  });

  const savedPath = savedCardPath(pages.pathOf(':token'), ':card');

  /** The form that pays with a saved card. A second click repeats the try of the first. */
  router.post(savedPath, async (ctx) => {
    const opened = await openForm(ctx);
    if (opened === null) return;
    const { subject, outcome } = opened;
    const id = pathParam(ctx, 'card');
    const token = savedCardToken(id);
    const returned: Returned = { key: tryKey(token), card: { kind: 'token', token } };
    const isRepeat = (await findTry(deps.db, { ...subject, key: returned.key })) !== null;
    if (!isRepeat) {
      const gateway = await cardGatewayOf(deps, subject.merchantId);
      const card = await offeredCard(deps, pages, subject, gateway);
      if (card?.id !== id || missingDetails(subject).length > 0) return seeOther(ctx, outcome);
      await limits.expectFewDeclines(ctx, subject);
    }
    await finish(ctx, { ...opened, isOwn: true }, returned);
  });

  /** For the waiting page after that form. */
  router.get(savedPath, async (ctx) => {
    const { subject, outcome } = await open(ctx);
    if (subject !== null) seeOther(ctx, outcome);
  });
}

type Taken = 'shown' | 'pending' | 'waiting' | 'foreign';

/**
 * Returns the intent that the bank asks this card's payer to confirm; null without one. Gives up the charge of another
 * card that the bank waits for.
 */
async function bankAfter<Subject extends CardSubject>(
  deps: ApiDeps,
  { bank }: CardPages<Subject>,
  subject: Subject,
  taken: Taken,
): Promise<string | null> {
  const intentId = bank?.intentOf(subject) ?? null;
  if (!bank || intentId === null) return null;
  if (taken === 'pending') {
    return isAtBank(await bank.attemptOf(subject, intentId)) ? intentId : null;
  }
  const { merchantId } = subject;
  if (taken === 'waiting' && (await leaveBank(deps.db, { merchantId, intentId }, deps.now()))) {
    await lookUp(deps, bank, subject);
  }
  return null;
}

/** The gateway's result: a token or a decline code. `key` is the same on every reload. */
interface Returned {
  readonly key: Buffer;
  readonly card: { kind: 'token'; token: string } | { kind: 'refused'; errorCode: string };
}

function readReturn(querystring: string): Returned | null {
  const query = new URLSearchParams(querystring);
  const token = query.get('payment_token') ?? '';
  if (PAYMENT_TOKEN.test(token)) return { key: tryKey(token), card: { kind: 'token', token } };
  const refusal = query.get('payment_error');
  if (refusal === null) return null;
  const errorCode = isDeclineCode(refusal) ? refusal : 'processing_error';
  // `payment_error_id` distinguishes two cards that were refused with the same code.
  const key = tryKey(JSON.stringify([refusal, query.get('payment_error_id')]));
  return { key, card: { kind: 'refused', errorCode } };
}

/**
 * Submits the card. A repeat does not count as a second try. `waiting`: the outcome of another card is unknown.
 * `foreign`: nothing was done, because a foreign page may have sent the browser here.
 */
async function takeCard<Subject extends CardSubject>(
  deps: ApiDeps,
  limits: PageLimits,
  ctx: Context,
  pages: CardPages<Subject>,
  given: Omit<Opened<Subject>, 'outcome'> & { returned: Returned; isOwn: boolean },
): Promise<Taken> {
  const { subject, isOwn } = given;
  const { key, card } = given.returned;
  const { merchantId, sessionId, mode } = subject;
  const { db, now } = deps;
  const page = {
    merchantId,
    sessionId,
    purpose: pages.purpose,
    subjectId: pages.subjectId(subject),
  };
  const ref = { merchantId, sessionId, key };
  const known = await findTry(db, ref);
  if (known !== null && known.errorCode !== null) return 'shown';
  if (known === null) {
    if (!isOwn) return 'foreign';
    // A card of the gateway's page passed this limit before, and the gateway's event submits it, too.
    const gateway = await cardGatewayOf(deps, merchantId);
    if (!gateway?.openCardEntry) await limits.expectFewDeclines(ctx, subject);
    await pages.beforeTry?.(subject);
    const isAdmitted = await admitTry(db, ref, { limit: CARD_TRIES_MAX[mode], nowAt: now() });
    if (!isAdmitted) return 'shown';
    const request = plainRequest(deps, ctx, given, gateway);
    await recordConsent(deps, pages, subject, { ...given, ...pages.asked(request, subject) });
  }
  const outcome: CardOutcome =
    card.kind === 'token'
      ? await deps.submitCard(page, card.token)
      : { kind: 'declined', errorCode: card.errorCode };
  if (outcome.kind === 'declined' && (await declineTry(db, ref, outcome.errorCode))) {
    if (isOwn) await limits.countDecline(ctx, subject);
    await pages.afterDecline?.(subject);
  }
  // After the expiry this card would be refused, so the payer may still confirm the charge of the other one.
  if (outcome.kind === 'waiting') return isPastExpiry(pages, subject, now()) ? 'shown' : 'waiting';
  return outcome.kind === 'pending' ? 'pending' : 'shown';
}
