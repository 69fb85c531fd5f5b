import type { Router } from '@koa/router';
import { DomainError } from '../../domain/errors.ts';
import type { Context, RequestState } from '../context.ts';

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
