import { recordCardPage } from '../../../db/repositories/checkouts/tries.ts';
import { findGatewayMethod } from '../../../db/repositories/customers/payment-methods.ts';
import { GatewayRejectedRequest } from '../../../gateways/port.ts';
import type { CardEntryRequest } from '../../../gateways/port.ts';
import type { Language } from '../parts/language.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { logFailure } from '../../http/every-request.ts';
import { cardEntryPath, cardGatewayOf, confirmPage, leavePage } from './card-page.tsx';
import { asksForCard, takesCard } from './card-page-kind.ts';
import type { CardRoutes, CardSubject } from './card-page-kind.ts';
import type { CardGateway } from './card-page.tsx';
import { missingDetails, shownDetails } from './details-form.ts';
import { browserOf, returnUrl } from './own-requests.ts';
import { seeOther, sendPage } from './page.tsx';
import type { Page } from './page.tsx';

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
