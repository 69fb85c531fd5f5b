import type { Context } from '../context.ts';
import { INTENT_PARAMETER, INTENT_PATH } from '../page-links.ts';

/**
 * Serves `/?xpay_intent_id=<id>` by the route at {@link INTENT_PATH}. Without the parameter `/` stays an unknown
 * path. Rule: D-§7.
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
