import type { Context } from '../context.ts';
import { newId } from '../../domain/ids.ts';
import type { ApiDeps } from '../deps.ts';
import type { Subject } from '../../runtime/tracing.ts';

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

/** A span for each request, named by its route, because the path of a hosted page contains its token. */
export function traceRequests({ trace = (_describe, work) => work() }: Pick<ApiDeps, 'trace'>) {
  return (ctx: Context, next: () => Promise<unknown>): Promise<unknown> =>
    trace(
      () => ({
        ...subjectOf(ctx.body),
        name: ctx.state.route ?? `${ctx.method} (no route)`,
        attributes: {
          'http.request.method': ctx.method,
          'http.response.status_code': ctx.status,
          'perennial.request_id': ctx.state.requestId,
        },
      }),
      next,
    );
}

/** Returns what the answer is about; nothing for a page. */
function subjectOf(body: unknown): Subject {
  if (typeof body !== 'string' || !body.startsWith('{')) return {};
  const { subscriptionId, xIntentId } = JSON.parse(body) as Record<string, unknown>;
  if (typeof subscriptionId === 'string') return { subscriptionId };
  return typeof xIntentId === 'string' ? { intentId: xIntentId } : {};
}

export function requestId({ now, random }: Pick<ApiDeps, 'now' | 'random'>) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    ctx.state.requestId = newId('req', now(), random);
    ctx.state.route = null;
    ctx.set('Request-Id', ctx.state.requestId);
    await next();
  };
}
