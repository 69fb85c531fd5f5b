import type { Link } from '../../../db/repositories/subscriptions/links.ts';
import type { Language } from '../../../domain/language/language.ts';
import {
  cardGatewayOf,
  detailsFields,
  detailsTitle,
  foreignFormPage,
  noGatewayPage,
  saleOf,
} from '../shared/card-page.tsx';
import type { PageDeps } from '../shared/card-page.tsx';
import {
  forgetDetails,
  hasProblem,
  keptDetails,
  missingDetails,
  readDetails,
  refuseDetails,
  valuesOf,
} from '../shared/details-form.ts';
import type { DetailName, TypedDetails } from '../shared/details-form.ts';
import { formToken, isOwnForm, isSame, readForm, setCookie, sign } from '../shared/own-requests.ts';
import { languageFor, notice, seeOther, sendPage } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { beginUse, goodsOf } from './goods.ts';
import { DetailsPage } from '../shared/views.tsx';
import { isToken, randomToken, tokenFrom } from '../../../domain/ids.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { findLink, isUsable } from '../../../db/repositories/subscriptions/links.ts';
import { pathParam } from '../../http/request.ts';
import { hashAddress } from '../shared/limits.ts';
import type { PageLimits } from '../shared/limits.ts';
import type { PageRoutes } from '../shared/card-page-kind.ts';

type Deps = Pick<PageDeps, 'sessionKey' | 'gateway' | 'language'>;

/** `visit`: the random id of this browser on this link. */
function linkPage(deps: Deps, link: Link, visit: string, typed: TypedDetails, nowAt: number): Page {
  const { code } = link.template;
  const { language } = deps;
  const sale = saleOf(deps, link.merchant.mode, goodsOf(link).sale(language, nowAt), null);
  if (deps.gateway === null) return noGatewayPage(sale);
  const form = {
    action: linkPath(code),
    visit,
    formToken: visitFormToken(deps, code, visit),
    fields: detailsFields(language, missingOf(link), typed),
    button: language.say('continue'),
  };
  return {
    language,
    status: 200,
    title: detailsTitle(sale, typed),
    content: <DetailsPage sale={sale} {...form} />,
  };
}

function missingOf({ template, savedDetails }: Link): DetailName[] {
  return missingDetails({ ...template, savedDetails });
}

/** For an unknown, expired or used-up link. `link`: null if unknown. Its code of 71 random bits cannot be guessed. */
function gonePage(language: Language, link: Link | null): Page {
  const { say } = language;
  const ask = link === null ? say('askSender') : say('askMerchant', { name: link.merchant.name });
  return notice(language, 410, say('linkGoneTitle'), [say('linkGone'), ask]);
}

function busyPage(language: Language): Page {
  return notice(language, 429, language.say('linkBusyTitle'), [language.say('linkBusy')]);
}

function linkPath(code: string): string {
  return `/l/${code}`;
}

function visitFormToken(
  { sessionKey }: Pick<Deps, 'sessionKey'>,
  code: string,
  visit: string,
): string {
  return formToken(sessionKey, `${code}:${visit}`);
}

const CODE = /^[0-9A-Za-z]{12}$/;

/** Registers the routes of the page at a link's `shortUrl`, which needs neither script nor cookies. */
export function linkPageRoutes({ router, deps, limits }: PageRoutes): void {
  /** Shows the link's page. This route must not write to the database, because previews and bots also open links. */
  router.get('/l/:code', async (ctx) => {
    const link = await openLink(deps, limits, ctx);
    if (link === null) return;
    const { code } = link.template;
    const known = cookieVisit(deps, ctx, code);
    const checkout = known === null ? null : await findPageOf(deps, link, known);
    if (checkout?.isOver === false) return seeOther(ctx, checkout.path);
    const nowAt = deps.now();
    if (!isUsable(link, nowAt)) return sendPage(deps, ctx, gonePage(languageFor(ctx), link));
    // A visit is the id of one browser on one link. After an expired or cancelled checkout the browser gets a new one.
    const visit = known === null || checkout !== null ? newVisit(deps) : known;
    // The cookie must be valid for the whole of a checkout that begins just before the link expires.
    const lifetimeMs = link.template.expiresAt - nowAt + deps.checkoutExpiryMs;
    if (visit !== known) setCookieVisit(deps, ctx, code, visit, lifetimeMs);
    const gateway = await cardGatewayOf(deps, link.template.merchantId);
    const page = { ...deps, gateway, language: languageFor(ctx) };
    const typed = keptDetails(deps, ctx, linkPath(code), missingOf(link));
    sendPage(deps, ctx, linkPage(page, link, visit, typed, nowAt));
  });

  /** Receives the payer's form. A repeat with the same visit redirects to the same checkout or payment. */
  router.post('/l/:code', async (ctx) => {
    const form = await readForm(ctx);
    const link = await openLink(deps, limits, ctx);
    if (link === null) return;
    const { code } = link.template;
    const formVisit = form.get('visit');
    if (!isToken(formVisit) || !isOwnForm(deps, ctx, form, `${code}:${formVisit}`))
      return sendPage(deps, ctx, foreignFormPage(languageFor(ctx), linkPath(code)));
    // Two tabs of one browser have two form visits but one cookie, so the cookie takes precedence.
    const visit = cookieVisit(deps, ctx, code) ?? formVisit;
    await takeFirstStep(deps, ctx, link, visit, readDetails(form, missingOf(link)));
  });
}

async function takeFirstStep(
  deps: ApiDeps,
  ctx: Context,
  link: Link,
  visit: string,
  typed: TypedDetails,
): Promise<void> {
  const { code } = link.template;
  const checkout = await findPageOf(deps, link, visit);
  if (checkout !== null) return seeOther(ctx, checkout.path);
  const nowAt = deps.now();
  if (!isUsable(link, nowAt)) return sendPage(deps, ctx, gonePage(languageFor(ctx), link));
  const gateway = await cardGatewayOf(deps, link.template.merchantId);
  if (gateway === null || hasProblem(typed)) {
    const shown = { ...deps, gateway, language: languageFor(ctx) };
    const page = linkPage(shown, link, visit, typed, nowAt);
    return refuseDetails(deps, ctx, { home: linkPath(code), typed, page });
  }
  const checkoutToken = checkoutTokenOf(deps, code, visit);
  const payer = { checkoutToken, addressHash: hashAddress(deps, ctx) };
  const goods = goodsOf(link);
  const use = await beginUse(deps, link, goods, payer, valuesOf(typed));
  switch (use.kind) {
    case 'taken':
    case 'repeated':
      forgetDetails(deps, ctx, linkPath(code));
      return seeOther(ctx, goods.pathOf(checkoutToken));
    case 'gone':
      return sendPage(deps, ctx, gonePage(languageFor(ctx), link));
    case 'limited': {
      const waitSeconds = Math.max(1, Math.ceil((use.untilAt - deps.now()) / 1_000));
      ctx.set('Retry-After', String(waitSeconds));
      return sendPage(deps, ctx, busyPage(languageFor(ctx)));
    }
  }
}

async function openLink(deps: ApiDeps, limits: PageLimits, ctx: Context): Promise<Link | null> {
  const code = pathParam(ctx, 'code');
  const link = await limits.lookUp(ctx, async () =>
    CODE.test(code) ? findLink(deps.db, code, deps.now()) : null,
  );
  const language = languageFor(ctx, link?.template.locale);
  if (link === null) sendPage(deps, ctx, gonePage(language, null));
  else ctx.state.pageMerchant = link.merchant;
  return link;
}

/** `isOver`: this checkout or payment ended unpaid. Null: the visit has neither. */
async function findPageOf(
  deps: ApiDeps,
  link: Link,
  visit: string,
): Promise<{ path: string; isOver: boolean } | null> {
  const goods = goodsOf(link);
  const token = checkoutTokenOf(deps, link.template.code, visit);
  const isOver = await goods.isOver(deps, token);
  return isOver === null ? null : { path: goods.pathOf(token), isOver };
}

/** A visit is a random id of one browser on one link. It gives the checkout's token, so a repeat creates nothing. */

const COOKIE = 'visit';

type VisitDeps = Pick<ApiDeps, 'publicUrl' | 'random' | 'sessionKey'>;

function newVisit({ random }: VisitDeps): string {
  return randomToken(random);
}

function checkoutTokenOf({ sessionKey }: VisitDeps, code: string, visit: string): string {
  return tokenFrom(sign(sessionKey, `checkout:${code}:${visit}`));
}

/** Returns the visit in the browser's cookie; null if the cookie is not signed for this link. */
function cookieVisit({ sessionKey }: VisitDeps, ctx: Context, code: string): string | null {
  const [visit = '', signature = ''] = (ctx.cookies.get(COOKIE) ?? '').split('.');
  const isOurs = isSame(signature, signatureOf(sessionKey, code, visit));
  return isOurs && isToken(visit) ? visit : null;
}

function setCookieVisit(
  { publicUrl, sessionKey }: VisitDeps,
  ctx: Context,
  code: string,
  visit: string,
  lifetimeMs: number,
): void {
  const value = `${visit}.${signatureOf(sessionKey, code, visit)}`;
  setCookie(ctx, publicUrl, { name: COOKIE, value, path: `/l/${code}`, lifetimeMs });
}

function signatureOf(sessionKey: string, code: string, visit: string): string {
  return sign(sessionKey, `visit:${code}:${visit}`).toString('base64url');
}
