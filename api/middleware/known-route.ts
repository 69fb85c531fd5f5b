import type { Router } from '@koa/router';
import { DomainError } from '../../domain/errors.ts';
import type { Context, RequestState } from '../context.ts';

/**
 * Refuses a request that no route serves: an unknown path with 404, a known path with another method
 * with 405 and `Allow`. Runs before authentication. A literal route takes precedence over a route with
 * parameters: `create` in `/customer/create` is never read as an id. Rule: D-21.
 */
export function knownRoute(routers: readonly Router<RequestState>[]) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const serving = routers
      .flatMap((router) => router.match(ctx.path, ctx.method).path)
      .filter((layer) => layer.methods.length > 0);
    const literal = serving.filter((layer) => layer.paramNames.length === 0);
    const routes = literal.length > 0 ? literal : serving;
    if (routes.length === 0) throw new DomainError('route_not_found');
    const route = routes.find((layer) => layer.methods.includes(ctx.method));
    if (route === undefined) {
      ctx.set('Allow', [...new Set(routes.flatMap((layer) => layer.methods))].join(', '));
      throw new DomainError('method_not_allowed');
    }
    ctx.state.route = `${ctx.method} ${String(route.path)}`;
    await next();
  };
}
