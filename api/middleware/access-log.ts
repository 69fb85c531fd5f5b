import type { Logger } from '../../runtime/logger.ts';
import type { Context } from '../context.ts';

/**
 * One line a request, made of an allow-list: no URL (hosted pages have their token in it), no
 * header, no body.
 */
export function accessLog(logger: Logger) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    await next();
    const { requestId, route, merchant, errorCode } = ctx.state;
    logger.info(
      {
        requestId,
        route: route ?? `${ctx.method} (no route)`,
        status: ctx.status,
        ms: Math.round(performance.now() - startedAt),
        ...(merchant === undefined ? {} : { merchantId: merchant.id }),
        ...(errorCode === undefined ? {} : { errorCode }),
      },
      'request',
    );
  };
}
