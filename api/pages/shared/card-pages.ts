import type { Context } from '../../http/request.ts';
import { bankRoutes, withBankAbove } from './bank.tsx';
import {
  askPayer,
  cardEntryPath,
  cardGatewayOf,
  confirmPage,
  endPage,
  leavePage,
  processingPage,
  saleOf,
} from './card-page.tsx';
import type { CardGateway, PageRequest } from './card-page.tsx';
import type {
  CardPages,
  CardRoutes,
  CardSubject,
  Opened,
  PageOpener,
  PageRoutes,
} from './card-page-kind.ts';
import { returnRoutes } from './card-return.ts';
import {
  askedDetails,
  forgetDetails,
  hasProblem,
  keptDetails,
  missingDetails,
  readDetails,
  refuseDetails,
  shownDetails,
  valuesOf,
} from './details-form.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { browserOf, returnUrl } from './own-requests.ts';
import { asksForCard, createOpener, isPreview, takesCard } from './card-page-kind.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';
import { mistypesIn } from '../parts/card-form.tsx';
import { recordCardPage } from '../../../db/repositories/checkouts/tries.ts';
import { findGatewayMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { GatewayRejectedRequest } from '../../../gateways/port.ts';
import type { CardEntryRequest } from '../../../gateways/port.ts';
import type { Language } from '../parts/language.ts';
import type { ApiDeps } from '../../deps.ts';
import { logFailure } from '../../http/every-request.ts';

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
    return stagePage(pages, request, { subject, outcome, nowAt: deps.now() });
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
  { subject, outcome, nowAt }: { subject: Subject; outcome: string; nowAt: number },
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
        const page = askPayer(request, { ...asked, subject, sale });
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
      return processingPage(language, outcome);
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

function entryRoutes<Subject extends CardSubject>({
  router,
  deps,
  limits,
  pages,
  open: openPage,
  openForm,
}: CardRoutes<Subject>): void {
  const path = cardEntryPath(pages.pathOf(':token'));

  router.post(path, async (ctx) => {
    const opened = await openForm(ctx);
    if (opened === null) return;
    const { subject, home, outcome, language } = opened;
    const hasDetails = !pages.fillIn || missingDetails(subject).length === 0;
    const isAsked =
      asksForCard(pages, subject) && takesCard(pages, subject, deps.now()) && hasDetails;
    const gateway = isAsked ? await cardGatewayOf(deps, subject.merchantId) : null;
    if (!gateway?.openCardEntry) return seeOther(ctx, outcome);
    await limits.expectFewDeclines(ctx, subject);
    await limits.countOpening(ctx, subject);
    // If the payer never returns, the gateway's event names the session, so the session must have its row.
    await pages.beforeTry?.(subject);
    // The card must be redeemed at this account, also if the merchant has another one when the payer returns.
    await recordCardPage(deps.db, subject, gateway.name);
    const entry = { home, subject, ...pages.limitsOf(subject), gateway, language };
    sendPage(deps, ctx, await openCardEntry(deps, ctx, entry));
  });

  /** For a GET of the form's address, for example from the address bar. */
  router.get(path, async (ctx) => {
    const { subject, home } = await openPage(ctx);
    if (subject !== null) seeOther(ctx, home);
  });
}

/** A card to be entered. `home`: the path of our page. `expiresAt`: real time, after which we take no card. */
interface Entry {
  readonly home: string;
  readonly subject: CardSubject;
  readonly tries: number;
  readonly expiresAt: number;
  readonly gateway: CardGateway;
  readonly language: Language;
}

/** Returns the page that leads to the gateway's page, or one with a button that tries again. */
async function openCardEntry(deps: ApiDeps, ctx: Context, entry: Entry): Promise<Page> {
  const { home, subject, tries, expiresAt, gateway, language } = entry;
  const { merchantId, sessionId, customerId, linkId } = subject;
  const { name, email } = shownDetails(subject);
  const customer = { merchantId, customerId, gateway: gateway.name };
  const opened = await open(deps, ctx, gateway, {
    session: sessionId,
    tries,
    customer: {
      id: customerId,
      name: name ?? undefined,
      email: email ?? undefined,
      gatewayMethodId: linkId ? null : await findGatewayMethod(deps.db, customer),
    },
    returnUrl: returnUrl(deps, home, browserOf(deps, ctx, home)),
    cancelUrl: `${deps.publicUrl}${home}`,
    expiresAt,
  });
  const { say } = language;
  const { company } = gateway;
  if (opened?.kind === 'redirect') {
    const title = say('continueTo', { name: company });
    return leavePage(language, title, say('enterAtCompanyNow', { company }), opened.url);
  }
  return confirmPage({ ...deps, language }, 503, sessionId, {
    title: say('entryFailedTitle'),
    text: say('entryFailed', { company }),
    button: say('tryAgain'),
    action: cardEntryPath(home),
  });
}

/** Null if the gateway refuses the request as wrong. */
async function open(
  { logger }: Pick<ApiDeps, 'logger'>,
  ctx: Context,
  { name, openCardEntry: send }: CardGateway,
  request: CardEntryRequest,
) {
  try {
    const outcome = (await send?.(request)) ?? null;
    if (outcome !== null && outcome.kind !== 'redirect') {
      const { requestId } = ctx.state;
      logger.warn({ requestId, gateway: name, ...outcome }, 'the gateway opened no card page');
    }
    return outcome;
  } catch (error) {
    if (!(error instanceof GatewayRejectedRequest)) throw error;
    logFailure(logger, ctx, error);
    return null;
  }
}
