import { Router } from '@koa/router';
import Koa from 'koa';
import { parse as parseQuery } from 'node:querystring';
import { DomainError } from '../../domain/errors.ts';
import type { ApiDeps } from '../deps.ts';
import { checkoutRoutes } from '../pages/checkout/page.tsx';
import { declarationRoutes } from '../pages/declaration/routes.ts';
import { linkPageRoutes } from '../pages/link/page.tsx';
import { paymentPageRoutes } from '../pages/payment/page.tsx';
import { setupMethodPageRoutes } from '../pages/setup-method/page.tsx';
import { portalRequestRoutes } from '../pages/portal/request.tsx';
import { portalRoutes } from '../pages/portal/routes.ts';
import { createPageLimits } from '../pages/shared/limits.ts';
import { pageErrors, refuseEmbedding } from '../pages/shared/page.tsx';
import { updateMethodPageRoutes } from '../pages/update-method/routes.ts';
import {
  createCustomer,
  deletePaymentMethodToken,
  getCustomer,
  getCustomers,
  getCustomerState,
  getPaymentMethodTokens,
  updateCustomerDetails,
} from '../routes/customers/routes.ts';
import { createPortalLink } from '../routes/customers/portal.ts';
import { getConsents } from '../routes/consents/routes.ts';
import { getDeclarations } from '../routes/declarations/routes.ts';
import { documentRoutes, healthRoutes, readDocument } from '../routes/documents/routes.ts';
import { gatewayEventRoutes } from '../routes/gateway-events/routes.ts';
import { getEvent, getEvents } from '../routes/events/routes.ts';
import { getEventDeliveries, getWebhookDeliveries } from '../routes/webhooks/attempts.ts';
import {
  getRecovery,
  pingWebhook,
  recoverEvents,
  resendEventRoute,
} from '../routes/webhooks/resend.ts';
import { getMerchantSettings } from '../routes/merchants/settings.ts';
import { generateLink, generatePaymentLink } from '../routes/links/routes.ts';
import { cancelIntent } from '../routes/payments/cancel.ts';
import { chargeSubscriptionOnce, chargeTokenised } from '../routes/payments/charge.ts';
import { createIntent } from '../routes/payments/create-intent.ts';
import { getIntent, getIntents, getIntentV1 } from '../routes/payments/intent.ts';
import { createRefund } from '../routes/payments/refund.ts';
import { getRefunds } from '../routes/payments/refunds.ts';
import { createSetupMethod, getSetupMethod } from '../routes/setup-methods/routes.ts';
import {
  cancelSubscription,
  editSubscription,
  pauseSubscription,
  resumeSubscription,
  retrySubscription,
  unpauseSubscription,
} from '../routes/subscriptions/command-routes.ts';
import { getCharges, getTimeline } from '../routes/subscriptions/charges.ts';
import { createSubscription } from '../routes/subscriptions/create.ts';
import {
  getSubscription,
  getSubscriptions,
  getUpcomingCharges,
} from '../routes/subscriptions/read.ts';
import { simulateSubscription } from '../routes/subscriptions/simulate.ts';
import { advanceTestClock, createTestClock, getTestClock } from '../routes/test-clocks/routes.ts';
import { declineNext } from '../routes/test-helpers/routes.ts';
import {
  createWebhook,
  deleteWebhook,
  getWebhooks,
  updateWebhook,
} from '../routes/webhooks/routes.ts';
import {
  checkFields,
  nameIgnoredFields,
  readJsonBody,
  readQuery,
  refuseProblems,
  refusesUnknownFields,
  unknownFieldProblems,
  withoutEmpty,
} from './body.ts';
import { authenticate, createLimits } from './caller.ts';
import type { Authentication } from './caller.ts';
import * as every from './every-request.ts';
import { keyUseOf } from './idempotency.ts';
import { callerOf, closeSignal, send } from './request.ts';
import type { Context, RequestState } from './request.ts';
import { changesSomething } from './route.ts';
import type { Operation, Route } from './route.ts';
import { unreadBody } from './server.ts';

/** In the order of the OpenAPI document. */
export const ROUTES: readonly Route[] = [
  createCustomer,
  getCustomer,
  updateCustomerDetails,
  getCustomers,
  getPaymentMethodTokens,
  deletePaymentMethodToken,
  getCustomerState,
  createPortalLink,
  createSubscription,
  getSubscription,
  getSubscriptions,
  getUpcomingCharges,
  getCharges,
  getTimeline,
  simulateSubscription,
  editSubscription,
  cancelSubscription,
  pauseSubscription,
  resumeSubscription,
  unpauseSubscription,
  retrySubscription,
  generateLink,
  generatePaymentLink,
  chargeSubscriptionOnce,
  chargeTokenised,
  createIntent,
  getIntent,
  getIntentV1,
  getIntents,
  cancelIntent,
  createRefund,
  getRefunds,
  createSetupMethod,
  getSetupMethod,
  getDeclarations,
  getConsents,
  getEvents,
  getEvent,
  getEventDeliveries,
  resendEventRoute,
  createWebhook,
  getWebhooks,
  updateWebhook,
  deleteWebhook,
  getWebhookDeliveries,
  recoverEvents,
  getRecovery,
  pingWebhook,
  getMerchantSettings,
  createTestClock,
  advanceTestClock,
  getTestClock,
  declineNext,
];

export const OPERATIONS: readonly Operation[] = [...ROUTES, readDocument];

type ApiRouter = Router<RequestState>;

/** The steps of every request, in their order. The steps of a call of the API follow in {@link serveCall}. */
export function createApp(deps: ApiDeps): Koa<RequestState> {
  const { trustedProxies = 0 } = deps;
  const app = new Koa<RequestState>({ proxy: trustedProxies > 0, maxIpsCount: trustedProxies });
  // Koa must not print errors to stderr, because `errorBoundary` logs them.
  app.silent = true;
  app.on('error', (error: unknown) => {
    const name = error instanceof Error ? error.name : typeof error;
    deps.logger.warn({ name }, 'connection error');
  });

  const check = authenticate(deps);
  const { open, pages, merchants } = createRouters(deps, check);
  const routers = [open, pages, merchants];
  app
    .use(unreadBody()) // wraps every middleware that answers
    .use(every.requestId(deps)) // before every middleware that logs: every answer and every log line contains the id
    .use(every.traceRequests(deps)) // wraps errorBoundary, as the log does
    .use(every.accessLog(deps)) // wraps errorBoundary, to log also the status of error answers
    .use(every.securityHeaders(deps.publicUrl)) // before every middleware that answers
    .use(every.errorBoundary(deps.logger)) // wraps every middleware that throws
    .use(every.readableHead) // inside errorBoundary, because it throws bad_request
    .use(every.deadline(...(deps.deadlineMs ?? []))) // inside errorBoundary, because it throws service_unavailable
    .use(every.intentAddress) // before knownRoute, because `/` has another route with the parameter
    .use(every.knownRoute(routers, check)); // before authentication: without credentials, an unknown path gets 404
  for (const router of routers) app.use(router.routes());
  return app;
}

/** Returns one router for each kind of caller. A router's middleware runs only for its own routes. */
export function createRouters(
  deps: ApiDeps,
  check: Authentication,
): Record<'open' | 'pages' | 'merchants', ApiRouter> {
  const open: ApiRouter = new Router({ sensitive: true });
  healthRoutes(open, deps);
  documentRoutes(open, deps, OPERATIONS);
  gatewayEventRoutes(open, deps);

  const pages: ApiRouter = new Router({ sensitive: true });
  pages.use(pageErrors(deps)); // before all that throws: a payer gets errors as HTML pages
  pages.use(refuseEmbedding(deps)); // before the look-up of a page, which counts unknown pages
  const limits = createPageLimits(); // counters that all pages share
  const routes = { router: pages, deps, limits };
  checkoutRoutes(routes);
  paymentPageRoutes(routes);
  setupMethodPageRoutes(routes);
  updateMethodPageRoutes(routes);
  linkPageRoutes(routes);
  declarationRoutes(routes);
  portalRoutes(routes);
  portalRequestRoutes(routes);

  const merchants: ApiRouter = new Router({ sensitive: true });
  const callLimits = createLimits(deps);
  for (const route of ROUTES) {
    merchants[route.method](route.path, (ctx) => serveCall(ctx, route, deps, check, callLimits));
  }

  return { open, pages, merchants };
}

/** The steps of a call of the API, in their order. */
async function serveCall(
  ctx: Context,
  route: Route,
  deps: ApiDeps,
  check: Authentication,
  limits: ReturnType<typeof createLimits>,
): Promise<void> {
  await check(ctx); // before the body is read, so that only known callers can upload
  await limits.request(ctx); // after authentication, so that only the merchant's own requests count
  ctx.state.body = await readJsonBody(ctx.req, route.body?.isOptional);
  if (route.isReadLimited) await limits.read(ctx);
  const isCostly = route.isCostly ?? route.query?.['limit'] !== undefined;
  await (isCostly ? limits.inTurn(ctx, () => answer(ctx, route, deps)) : answer(ctx, route, deps));
}

async function answer(ctx: Context, route: Route, deps: ApiDeps): Promise<void> {
  const { isTestOnly, tag, query = {}, body, limits, idempotencyKey, handle } = route;
  const merchant = callerOf(ctx);
  if (merchant.isReadOnly && changesSomething(route)) throw new DomainError('read_only_credential');
  if (isTestOnly && merchant.mode !== 'test') {
    throw new DomainError('operation_not_allowed', `${tag} need test credentials.`);
  }
  // If the body is refused, the answer names the ignored fields of its first level.
  nameIgnoredFields(ctx, body?.fields ?? {}, {});
  const queryFields = readQuery(query, parseQuery(ctx.querystring));
  const { fields, problems } = readBody(ctx, route, deps);
  nameIgnoredFields(ctx, body?.fields ?? {}, fields);
  const keyUse = idempotencyKey === undefined ? null : keyUseOf(ctx);
  const check = async (): Promise<void> => {
    refuseProblems(problems);
    refuseProblems((await limits?.({ merchant, body: fields }, deps)) ?? []);
  };
  // With a key it runs after the claim, so that a repeat gets its answer also under new limits.
  if (keyUse === null) await check();
  const {
    params,
    state: { late },
  } = ctx;
  const closed = () => closeSignal(ctx.res);
  const call = { merchant, params, query: queryFields, body: fields, keyUse, check, late, closed };
  send(ctx, await handle(call, deps));
}

function readBody(ctx: Context, { body }: Route, deps: ApiDeps): ReturnType<typeof checkFields> {
  const refusesUnknown = refusesUnknownFields(ctx);
  if (body === undefined) return { fields: {}, problems: [] };
  const sent = ctx.state.body;
  const given = sent === undefined && body.isOptional ? {} : sent;
  const present = withoutEmpty(body.fields, given, body.refusesEmpty);
  return checkFields(body.fields, present, (fields) => [
    ...(refusesUnknown || body.refusesUnknown
      ? unknownFieldProblems(body.fields, present, fields)
      : []),
    ...(body.problems?.(fields, deps) ?? []),
  ]);
}
