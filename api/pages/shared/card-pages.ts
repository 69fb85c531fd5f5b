import type { Context } from '../../context.ts';
import { bankRoutes } from './bank.tsx';
import { entryRoutes } from './card-entry.ts';
import { cardGatewayOf } from './card-page.tsx';
import type { CardPages, CardSubject, PageOpener, PageRoutes } from './card-page-kind.ts';
import { returnRoutes } from './card-return.ts';
import { askedDetails, hasProblem, readDetails, valuesOf } from './details-form.ts';
import type { DetailName, TypedDetails } from './details-form.ts';
import { forgetDetails, keptDetails, refuseDetails } from './kept-details.ts';
import { browserOf } from './own-requests.ts';
import { createOpener, isPreview } from './card-page-kind.ts';
import { seeOther, sendPage } from './page.tsx';
import { mistypesIn } from '../parts/card-form.tsx';
import type { Language } from '../parts/language.ts';

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
    { subject, home, language }: { subject: Subject; home: string; language: Language },
    names: readonly DetailName[],
    typed: TypedDetails,
  ) => {
    const gateway = pages.asks(subject) ? await cardGatewayOf(deps, subject.merchantId) : null;
    const browser = browserOf(deps, ctx, home);
    const mistypes = mistypesIn(ctx.querystring);
    const request = { ...deps, gateway, language, home, browser, names, typed, mistypes };
    return pages.show(request, subject);
  };

  router.get(path, async (ctx) => {
    const { subject, home, outcome, language } = await open(ctx);
    if (subject === null) return;
    const next = ctx.url === outcome ? null : ((await pages.next?.(subject)) ?? null);
    if (next !== null) return seeOther(ctx, next);
    if (pages.asks(subject)) {
      await limits.expectFewDeclines(ctx, subject);
      if (!isPreview(ctx)) await pages.opened?.(subject);
    }
    const names = pages.fillIn ? askedDetails(ctx, subject) : [];
    const typed = keptDetails(deps, ctx, home, names);
    sendPage(deps, ctx, await pageOf(ctx, { subject, home, language }, names, typed));
  });

  if (pages.fillIn) {
    router.post(path, async (ctx) => {
      const opened = await openForm(ctx);
      if (opened === null) return;
      const { subject, home, form } = opened;
      if (pages.asks(subject)) {
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
