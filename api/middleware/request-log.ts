import type { Context } from '../context.ts';
import { newId } from '../../domain/ids.ts';
import type { ApiDeps } from '../deps.ts';

/** No URL, header or body is logged: the URL of a hosted page contains its token. */
export function accessLog({ logger, onAnswer }: Pick<ApiDeps, 'logger' | 'onAnswer'>) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    await next();
    const { requestId, route, merchant, errorCode } = ctx.state;
    const ms = performance.now() - startedAt;
    onAnswer?.({ route: route ?? 'none', status: String(ctx.status) }, ms / 1_000);
    logger.info(
      {
        requestId,
        route: route ?? `${ctx.method} (no route)`,
        status: ctx.status,
        ms: Math.round(ms),
        ...(merchant === undefined ? {} : { merchantId: merchant.id }),
        ...(errorCode === undefined ? {} : { errorCode }),
      },
      'request',
    );
  };
}

export function requestId({ now, random }: Pick<ApiDeps, 'now' | 'random'>) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    ctx.state.requestId = newId('req', now(), random);
    ctx.state.route = null;
    ctx.set('Request-Id', ctx.state.requestId);
    await next();
  };
}
