import { listIntents, listSubscriptions } from '../../../db/repositories/lists.ts';
import { findPaid } from '../../../db/repositories/payments/receipts.ts';
import { businessNow } from '../../../db/repositories/subscriptions/business-time.ts';
import { findSubscription } from '../../../db/repositories/subscriptions/row.ts';
import type { SubscriptionView } from '../../../db/repositories/subscriptions/row.ts';
import { DomainError } from '../../../domain/errors.ts';
import { commandIdFrom, isId } from '../../../domain/ids.ts';
import {
  allowedActions,
  cancelledAt,
  DEFAULT_PORTAL,
  PORTAL_ACTIONS,
  portalCommand,
} from '../../../domain/subscription/portal.ts';
import type { PortalAction } from '../../../domain/subscription/portal.ts';
import { portalPath, updateMethodLink } from '../../../runtime/payer-links.ts';
import { pathParam } from '../../http/request.ts';
import type { Context } from '../../http/request.ts';
import type { ApiDeps } from '../../deps.ts';
import { confirmPage, endPage, unknownPage } from '../shared/card-page.tsx';
import type { PageRoutes } from '../shared/card-page-kind.ts';
import { formToken, sign } from '../shared/own-requests.ts';
import { seeOther, sendPage } from '../shared/page.tsx';
import type { Page } from '../shared/page.tsx';
import { paymentReceipt } from '../shared/receipt.ts';
import { ACTION_TEXTS, PortalPage } from './page.tsx';
import type { ShownSubscription } from './page.tsx';
import { portalSessions } from './session.ts';
import type { OpenedPortal } from './session.ts';

/** Newest subscriptions and payments on the page. */
const SHOWN_MOST = 50;

const BEGUN = ['TRIALING', 'ACTIVE', 'UNPAID', 'PAUSED', 'ENDED'] as const;

const HOME = portalPath(':token');

/** Registers a payer's own page. Each request acts only on records of the session's customer. */
export function portalRoutes(routes: PageRoutes): void {
  const { router, deps } = routes;
  const { open, openForm, take } = portalSessions(routes);

  router.get(HOME, async (ctx) => {
    const opened = await open(ctx);
    if (opened !== null) sendPage(deps, ctx, await homePage(deps, opened));
  });

  router.post(HOME, async (ctx) => {
    const taken = await take(ctx);
    if (taken !== null) seeOther(ctx, taken.home);
  });

  router.get(`${HOME}/receipt/:intent`, async (ctx) => {
    const opened = await open(ctx);
    if (opened === null) return;
    const { session, merchant, language, home } = opened;
    const { merchantId, customerId } = session;
    const intentId = pathParam(ctx, 'intent');
    const paid = isId('in', intentId) ? await findPaid(deps.db, { merchantId, intentId }) : null;
    if (paid?.customerId !== customerId) return sendPage(deps, ctx, unknownPage(language));
    const { name } = merchant;
    const purchase = { productName: paid.description, merchantName: name };
    const receipt = paymentReceipt(language, paid, purchase);
    const text = { title: language.say('paymentReceived'), texts: [], receipt };
    sendPage(deps, ctx, endPage(language, 200, text, { name, url: home }));
  });

  /** The one step before a cancellation. */
  router.get(`${HOME}/:subscription/cancel`, async (ctx) => {
    const opened = await open(ctx);
    const shown = opened && (await subscriptionIn(deps, ctx, opened));
    if (!opened || !shown) return;
    const { language, home, session } = opened;
    const { say, date } = language;
    const { subscription, nowAt } = shown;
    if (!isAllowed(opened, shown, 'cancel')) return seeOther(ctx, home);
    const endAt = cancelledAt(subscription.state, nowAt);
    const page = confirmPage({ ...deps, language }, 200, session.id, {
      title: say(ACTION_TEXTS.cancel),
      text: endAt === null ? say('endsAtOnce') : say('endsThen', { date: date(endAt) }),
      button: say(ACTION_TEXTS.cancel),
      action: `${home}/${subscription.id}/cancel`,
      back: { href: home, text: say('keepSubscription') },
    });
    sendPage(deps, ctx, page);
  });

  for (const action of PORTAL_ACTIONS) {
    router.post(`${HOME}/:subscription/${action}`, async (ctx) => {
      const opened = await openForm(ctx);
      const shown = opened && (await subscriptionIn(deps, ctx, opened));
      if (!opened || !shown) return;
      if (isAllowed(opened, shown, action)) await execute(deps, opened, shown, action);
      // Else the page shows how things stand by now.
      seeOther(ctx, opened.home);
    });
  }
}

function isAllowed(
  { merchant }: OpenedPortal,
  { subscription, nowAt }: ShownSubscription,
  action: PortalAction,
): boolean {
  const rights = merchant.settings.portal ?? DEFAULT_PORTAL;
  return allowedActions(subscription.state, rights, nowAt).includes(action);
}

async function execute(
  { sessionKey, workflows }: ApiDeps,
  { session }: OpenedPortal,
  { subscription: { state }, nowAt }: ShownSubscription,
  action: PortalAction,
): Promise<void> {
  const { merchantId, subscriptionId, version } = state;
  const ref = { merchantId, subscriptionId };
  // A second click repeats the command of the first.
  const said = `portal:${session.id}:${subscriptionId}:${action}:${version}`;
  const commandId = commandIdFrom(sign(sessionKey, said));
  const answer = await workflows.execute(ref, portalCommand(action, state, commandId, nowAt));
  if (answer.kind === 'pending') throw new DomainError('service_unavailable');
}

/** Returns the subscription in the path. Answers, and returns null, unless it is the session's customer's. */
async function subscriptionIn(
  deps: ApiDeps,
  ctx: Context,
  { session, language }: OpenedPortal,
): Promise<ShownSubscription | null> {
  const id = pathParam(ctx, 'subscription');
  const subscription = await findSubscription(deps.db, session.merchantId, id);
  if (subscription?.customerId === session.customerId) return shownOf(deps, subscription);
  sendPage(deps, ctx, unknownPage(language));
  return null;
}

async function shownOf(
  { db, now }: ApiDeps,
  subscription: SubscriptionView,
): Promise<ShownSubscription> {
  const { state, testClockId } = subscription;
  return {
    subscription,
    nowAt: testClockId === null ? now() : await businessNow(db, state, now()),
  };
}

async function homePage(deps: ApiDeps, opened: OpenedPortal): Promise<Page> {
  const { session, merchant, language, home } = opened;
  const { merchantId, customerId } = session;
  const newest = { merchantId, limit: SHOWN_MOST };
  const nowAt = deps.now();
  const [subscriptions, payments] = await Promise.all([
    listSubscriptions(deps.db, newest, { customerId, status: BEGUN }),
    listIntents(deps.db, { ...newest, sort: 'settledAt' }, { customerId }, nowAt),
  ]);
  // A checkout that was never paid is none of the payer's subscriptions.
  const begun = subscriptions.filter(({ state }) => state.anchorAt !== null);
  const content = PortalPage({
    language,
    merchantName: merchant.name,
    rights: merchant.settings.portal ?? DEFAULT_PORTAL,
    home,
    formToken: formToken(deps.sessionKey, session.id),
    returnUrl: session.returnUrl,
    subscriptions: await Promise.all(begun.map((each) => shownOf(deps, each))),
    payments,
    cardLink: ({ state }) => updateMethodLink(deps, state, nowAt),
  });
  const title = language.say('portalTitle', { name: merchant.name });
  return { language, status: 200, title, content };
}
