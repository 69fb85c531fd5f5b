import { newId } from '../../domain/ids.ts';
import type { Context } from '../context.ts';
import type { ApiDeps } from '../deps.ts';

/** Gives every request an id, which its answer and its log lines contain. */
export function requestId({ now, random }: Pick<ApiDeps, 'now' | 'random'>) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    ctx.state.requestId = newId('req', now(), random);
    ctx.state.route = null;
    ctx.set('Request-Id', ctx.state.requestId);
    await next();
  };
}
