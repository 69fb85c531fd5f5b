import type { Context } from '../../http/request.ts';
import { logFailure } from '../../http/every-request.ts';
import type { ApiDeps } from '../../deps.ts';
import { recordCardPage } from '../../../db/repositories/checkouts/tries.ts';
import { findGatewayMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { GatewayRejectedRequest } from '../../../gateways/port.ts';
import type { CardEntryRequest } from '../../../gateways/port.ts';
import { cardEntryPath, cardGatewayOf, confirmPage, leavePage } from './card-page.tsx';
import type { CardGateway, PageRequest } from './card-page.tsx';
import { offerText, recordConsent } from './consent.ts';
import { asksForCard, isPreview, takesCard } from './card-page-kind.ts';
import type { CardPages, CardRoutes, CardSubject, Opened } from './card-page-kind.ts';
import { missingDetails, shownDetails } from './details-form.ts';
import type { DetailName } from './details-form.ts';
import { browserOf, returnUrl } from './own-requests.ts';
import { offeredCard } from './saved-card.tsx';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';
import type { SaleText } from './views.tsx';

/** Registers the form that leads to the gateway's page for a card. */
export function entryRoutes<Subject extends CardSubject>({
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
    const { subject, outcome } = opened;
    const hasDetails = !pages.fillIn || missingDetails(subject).length === 0;
    const isAsked =
      asksForCard(pages, subject) && takesCard(pages, subject, deps.now()) && hasDetails;
    const gateway = isAsked ? await cardGatewayOf(deps, subject.merchantId) : null;
    if (!gateway?.openCardEntry) return seeOther(ctx, outcome);
    await limits.expectFewDeclines(ctx, subject);
    await limits.countOpening(ctx, subject);
    const request = plainRequest(deps, ctx, opened, gateway);
    const { sale } = pages.asked(request, subject);
    const page = await openCardEntry(deps, ctx, pages, { subject, request, sale });
    sendPage(deps, ctx, page ?? entryFailedPage(deps, opened, gateway.company));
  });

  /** For a GET of the form's address, for example from the address bar. */
  router.get(path, async (ctx) => {
    const { subject, home } = await openPage(ctx);
    if (subject !== null) seeOther(ctx, home);
  });
}

type EntryRequest = PageRequest & { readonly gateway: CardGateway };

/** The request of a page on which nothing was typed. */
export function plainRequest<Subject, Gateway extends CardGateway | null>(
  deps: ApiDeps,
  ctx: Context,
  { home, language }: Pick<Opened<Subject>, 'home' | 'language'>,
  gateway: Gateway,
): PageRequest & { readonly gateway: Gateway } {
  const browser = browserOf(deps, ctx, home);
  return { ...deps, gateway, language, home, browser, names: [], typed: new Map(), mistypes: [] };
}

/**
 * Returns the page that leads a person's browser to the gateway's page, if our page would ask nothing and say nothing else.
 * Null: our page is shown. Previews and bots send no `Sec-Fetch-Dest`, and the way back from the gateway has a query.
 */
export async function straightToGateway<Subject extends CardSubject>(
  { deps, limits, pages }: Pick<CardRoutes<Subject>, 'deps' | 'limits' | 'pages'>,
  ctx: Context,
  { opened, names }: { opened: Opened<Subject>; names: readonly DetailName[] },
): Promise<Page | null> {
  const { subject } = opened;
  const isPerson = ctx.get('Sec-Fetch-Dest') === 'document' && ctx.method === 'GET';
  const asksNothing = pages.fillIn && names.length === 0 && pages.stageOf(subject) === 'open';
  if (!isPerson || isPreview(ctx) || ctx.querystring !== '' || !asksNothing) return null;
  const gateway = await cardGatewayOf(deps, subject.merchantId);
  if (!gateway?.openCardEntry || !takesCard(pages, subject, deps.now())) return null;
  if ((await offeredCard(deps, pages, subject, gateway)) !== null) return null;
  const request = plainRequest(deps, ctx, opened, gateway);
  const { sale, alert } = pages.asked(request, subject);
  if (alert !== null) return null;
  // Above the limit, the button of our page says so.
  const isBelowLimit = await limits.countOpening(ctx, subject).then(
    () => true,
    () => false,
  );
  if (!isBelowLimit) return null;
  return openCardEntry(deps, ctx, pages, { subject, request, sale });
}

/** Returns the page that leads to the gateway's page; null if the gateway opens none. */
async function openCardEntry<Subject extends CardSubject>(
  deps: ApiDeps,
  ctx: Context,
  pages: CardPages<Subject>,
  { subject, request, sale }: { subject: Subject; request: EntryRequest; sale: SaleText },
): Promise<Page | null> {
  // If the payer never returns, the gateway's event names the session, so the session must have its row.
  await pages.beforeTry?.(subject);
  // The card must be redeemed at this account, also if the merchant has another one when the payer returns.
  const { home, browser, gateway, language } = request;
  await recordCardPage(deps.db, subject, gateway.name);
  const { tries, expiresAt } = pages.limitsOf(subject);
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
    returnUrl: returnUrl(deps, home, browser),
    cancelUrl: `${deps.publicUrl}${home}?back`,
    expiresAt,
    text: offerText(language, sale),
    locale: language.locale,
  });
  if (opened?.kind !== 'redirect') return null;
  // The payer agrees by entering a card on the page that opens now.
  await recordConsent(deps, pages, subject, { language, sale });
  const { say, join } = language;
  const { company } = gateway;
  const text = join(say('enterAtCompanyNow', { company }), sale.offer.onceEntered);
  return leavePage(language, say('continueTo', { name: company }), text, opened.url);
}

function entryFailedPage<Subject extends CardSubject>(
  deps: ApiDeps,
  { subject: { sessionId }, home, language }: Opened<Subject>,
  company: string,
): Page {
  const { say } = language;
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
