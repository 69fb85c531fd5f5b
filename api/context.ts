import type { RouterContext } from '@koa/router';
import type { MerchantMode } from '../db/schema/merchants.ts';

/** Who is calling: one merchant in one mode. Every record a request touches is this merchant's. */
export interface Merchant {
  readonly id: string;
  readonly mode: MerchantMode;
}

/** What the middleware learned of a request so far. */
export interface RequestState {
  requestId: string;
  /** Method and template of the matched route; null until one matched. */
  route: string | null;
  /** Tells a moment before the request is answered 503 because nothing else came in time. */
  late: AbortSignal;
  /** Code of the error answer, for the access log. */
  errorCode?: string;
  merchant?: Merchant;
  /** The JSON body as sent; undefined when the request has none. */
  body?: unknown;
}

export type Context = RouterContext<RequestState>;

/** The caller. Only for handlers behind authentication. */
export function callerOf(ctx: Context): Merchant {
  const { merchant } = ctx.state;
  if (merchant === undefined) throw new Error('this route is not behind authentication');
  return merchant;
}

/** A path parameter of the matched route. */
export function pathParam(ctx: Context, name: string): string {
  return ctx.params[name] ?? '';
}
