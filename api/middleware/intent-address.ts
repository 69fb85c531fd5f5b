import type { Context } from '../context.ts';
import { INTENT_PARAMETER, INTENT_PATH } from '../page-links.ts';

/**
 * Changes the path of `/?xpay_intent_id=<id>` to {@link INTENT_PATH}, whose route then answers. Without this
 * parameter, `/` is answered by `documentRoutes`.
 */
export function intentAddress() {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
    if (isRead && ctx.path === '/' && ctx.query[INTENT_PARAMETER] !== undefined) {
      ctx.path = INTENT_PATH;
    }
    await next();
  };
}
