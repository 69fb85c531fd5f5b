import { Router } from '@koa/router';
import Koa from 'koa';
import type { RequestState } from './context.ts';
import type { ApiDeps } from './deps.ts';
import { accessLog, requestId, traceRequests } from './middleware/request-log.ts';
import { authenticate } from './middleware/authenticate.ts';
import { deadline } from './middleware/deadline.ts';
import { errorBoundary } from './middleware/errors.ts';
import { intentAddress, knownRoute, readableHead } from './middleware/known-route.ts';
import { jsonBody } from './middleware/json-body.ts';
import { costlyInTurn, rateLimit, readLimit } from './middleware/rate-limit.ts';
import { securityHeaders } from './middleware/security-headers.ts';
import { unreadBody } from './middleware/unread-body.ts';
import { checkoutRoutes } from './pages/checkout/page.tsx';
import { linkPageRoutes } from './pages/link/routes.ts';
import { paymentPageRoutes } from './pages/payment/page.tsx';
import { setupMethodPageRoutes } from './pages/setup-method/page.tsx';
import { createPageLimits } from './pages/shared/limits.ts';
import { pageErrors, refuseEmbedding } from './pages/shared/page.tsx';
import { updateMethodPageRoutes } from './pages/update-method/routes.ts';
import { gatewayEventRoutes } from './routes/gateway-events/routes.ts';
import { documentRoutes } from './routes/documents/routes.ts';
import { registerRoutes } from './route.ts';
import { OPERATIONS, ROUTES } from './routes.ts';
import { healthRoutes } from './routes/health/routes.ts';

type ApiRouter = Router<RequestState>;

export function createApp(deps: ApiDeps): Koa<RequestState> {
  const { trustedProxies = 0 } = deps;
  const app = new Koa<RequestState>({ proxy: trustedProxies > 0, maxIpsCount: trustedProxies });
  // Koa must not print errors to stderr, because `errorBoundary` logs them.
  app.silent = true;
  app.on('error', (error: unknown) =>
    deps.logger.warn({ name: nameOf(error) }, 'connection error'),
  );

  const check = authenticate(deps);
  const { open, pages, merchants } = createRouters(deps, check);
  const routers = [open, pages, merchants];
  app
    .use(unreadBody()) // wraps every middleware that answers
    .use(requestId(deps)) // before every middleware that logs: every answer and every log line contains the id
    .use(traceRequests(deps)) // wraps errorBoundary, as the log does
    .use(accessLog(deps)) // wraps errorBoundary, to log also the status of error answers
    .use(securityHeaders(deps.publicUrl)) // before every middleware that answers
    .use(errorBoundary(deps.logger)) // wraps every middleware that throws
    .use(readableHead()) // inside errorBoundary, because it throws bad_request
    .use(deadline(...(deps.deadlineMs ?? []))) // inside errorBoundary, because it throws service_unavailable
    .use(intentAddress()) // before knownRoute, because `/` has another route with the parameter
    .use(knownRoute(routers, check)); // before authentication: without credentials, an unknown path gets 404
  for (const router of routers) app.use(router.routes());
  return app;
}

/** Returns one router for each kind of caller. A router's middleware runs only for its own routes. */
export function createRouters(
  deps: ApiDeps,
  check: ReturnType<typeof authenticate>,
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

  const merchants: ApiRouter = new Router({ sensitive: true });
  merchants.use(check); // before the body is read, so that only known callers can upload
  merchants.use(rateLimit(deps)); // after authentication, so that only the merchant's own requests count
  merchants.use(jsonBody(ROUTES));
  registerRoutes(merchants, deps, ROUTES, {
    readLimit: readLimit(deps),
    costlyInTurn: costlyInTurn(),
  });

  return { open, pages, merchants };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
