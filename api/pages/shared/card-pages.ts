import type { Router } from '@koa/router';
import type { RequestState } from '../../context.ts';
import type { ApiDeps } from '../../deps.ts';
import { bankRoutes } from './bank-routes.ts';
import { entryRoutes } from './card-entry.ts';
import { cardGatewayOf } from './card-gateway.ts';
import type { CardPages, CardSubject } from './card-page-kind.ts';
import { returnRoutes } from './card-return.ts';
import { readDetails } from './details-form.ts';
import type { PageLimits } from './limits.ts';
import { browserOf } from './own-return.ts';
import { createOpener, isPreview } from './page-opener.ts';
import { seeOther, sendPage } from './page.tsx';

/**
 * Registers the routes of one kind of card page: the page, its details form, the form to the gateway's page, and the
 * return URL. No card number reaches this server.
 */
export function cardPageRoutes<Subject extends CardSubject>(
  router: Router<RequestState>,
  deps: ApiDeps,
  limits: PageLimits,
  pages: CardPages<Subject>,
): void {
  const { details } = pages;
  const path = pages.pathOf(':token');

  const opener = createOpener(deps, limits, pages);
  const { open, openForm } = opener;

  router.get(path, async (ctx) => {
    const { token, subject, home, language } = await open(ctx);
    if (subject === null) return;
    const asks = pages.asks(subject);
    if (asks) {
      await limits.expectFewDeclines(ctx, subject);
      if (!isPreview(ctx)) await pages.opened?.(subject);
    }
    const gateway = asks ? await cardGatewayOf(deps, subject.merchantId) : null;
    const at = { token, browser: browserOf(deps, ctx, home) };
    sendPage(deps, ctx, pages.show({ ...deps, gateway, language }, subject, at));
  });

  if (details) {
    router.post(path, async (ctx) => {
      const opened = await openForm(ctx);
      if (opened === null) return;
      const { token, subject, home, language, form } = opened;
      if (pages.asks(subject)) {
        const typed = readDetails(form, details.missing(subject));
        if ([...typed.values()].some(({ problem }) => problem !== null)) {
          const gateway = await cardGatewayOf(deps, subject.merchantId);
          const page = { ...deps, gateway, language };
          sendPage(deps, ctx, details.askAgain(page, token, subject, typed));
          return;
        }
        const given = [...typed].map(([name, { value }]) => [name, value] as const);
        await details.fillIn(subject, Object.fromEntries(given));
      }
      seeOther(ctx, home);
    });
  }

  entryRoutes(router, deps, limits, pages, opener);
  returnRoutes(router, deps, limits, pages, opener);
  bankRoutes(router, deps, limits, pages, opener);
}
