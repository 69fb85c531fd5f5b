import type { Router } from '@koa/router';
import { DomainError } from '../../domain/errors.ts';
import type { Context, RequestState } from '../context.ts';
import { INTENT_PARAMETER, INTENT_PATH } from '../../runtime/payer-links.ts';

type Authentication = (ctx: Context, next: () => Promise<unknown>) => Promise<void>;

const PATH_SHOWN_MAX = 200;

/**
 * Refuses a request that no route serves: 404, or 405 with `Allow`. Credentials are checked first. A literal route
 * takes precedence, so `create` in `/customer/create` is never read as an id.
 */
export function knownRoute(routers: readonly Router<RequestState>[], check: Authentication) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const serving = routers
      .flatMap((router) => router.match(ctx.path, ctx.method).path)
      .filter((layer) => layer.methods.length > 0);
    const literal = serving.filter((layer) => layer.paramNames.length === 0);
    const routes = literal.length > 0 ? literal : serving;
    const route = routes.find((layer) => layer.methods.includes(ctx.method));
    // Wrong credentials get 401 on every path. A payer who mistypes a URL sends no credentials and gets 404.
    if (route === undefined && ctx.get('Authorization') !== '')
      await check(ctx, async () => undefined);
    if (routes.length === 0) {
      const path = ctx.path.slice(0, PATH_SHOWN_MAX);
      throw new DomainError('route_not_found', `There is no ${ctx.method} ${path}.`);
    }
    if (route === undefined) {
      ctx.set('Allow', [...new Set(routes.flatMap((layer) => layer.methods))].join(', '));
      throw new DomainError('method_not_allowed');
    }
    ctx.state.route = `${ctx.method} ${String(route.path)}`;
    await next();
  };
}

/** Lets the route of {@link INTENT_PATH} answer `/?xpay_intent_id=<id>`. */
export function intentAddress() {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (isRead && ctx.path === '/' && ctx.query[INTENT_PARAMETER] !== undefined) {
      ctx.path = INTENT_PATH;
    }
    await next();
  };
}

/** Refuses an HTTP/1.1 request without a Host header, as HTTP demands, and a URL without a path, with 400. */
export function readableHead() {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const { httpVersion, headers } = ctx.req;
    if (httpVersion === '1.1' && headers.host === undefined) {
      throw new DomainError('bad_request', 'The request has no Host header.');
    }
    if (!hasPath(ctx)) throw new DomainError('bad_request', 'The request has no valid URL.');
    await next();
  };
}

/** Koa has no path for a URL such as `foo://bar`, and throws for `http://[/`. */
function hasPath(ctx: Context): boolean {
  try {
    return typeof ctx.path === 'string';
  } catch {
    return false;
  }
}
