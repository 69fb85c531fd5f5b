import { DomainError } from '../../domain/errors.ts';
import type { Context } from '../context.ts';

/** Refuses an HTTP/1.1 request without a Host header with 400, as HTTP demands. */
export function hostHeader() {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const { httpVersion, headers } = ctx.req;
    if (httpVersion === '1.1' && headers.host === undefined) {
      throw new DomainError('bad_request', 'The request has no Host header.');
    }
    await next();
  };
}
