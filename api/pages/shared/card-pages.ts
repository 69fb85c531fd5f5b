import type { Context } from '../../http/request.ts';
import { bankRoutes, withBankAbove } from './bank.tsx';
import { entryRoutes } from './card-entry.ts';
import { askPayer, cardGatewayOf, endPage, processingPage, saleOf } from './card-page.tsx';
import type { PageRequest } from './card-page.tsx';
import type { CardPages, CardSubject, Opened, PageOpener, PageRoutes } from './card-page-kind.ts';
import { returnRoutes } from './card-return.ts';
import {
  askedDetails,
  forgetDetails,
  hasProblem,
  keptDetails,
  readDetails,
  refuseDetails,
  valuesOf,
} from './details-form.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { browserOf } from './own-requests.ts';
import { asksForCard, createOpener, isPreview, takesCard } from './card-page-kind.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';
import { mistypesIn } from '../parts/card-form.tsx';

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
