import type { RouterContext } from '@koa/router';
import type { MerchantMode } from '../db/schema/merchants.ts';
import type { DomainError } from '../domain/errors.ts';
import type { Branding } from '../domain/branding.ts';
import type { Locale } from '../domain/locales.ts';

/** The caller: one merchant in one mode. A request reads and writes only this merchant's records. */
export interface Merchant {
  readonly id: string;
  readonly mode: MerchantMode;
  /** True: the credential may not change anything. */
  readonly isReadOnly: boolean;
}

export interface RequestState {
  requestId: string;
  /** Method and path template of the matched route. Null until a route has matched. */
  route: string | null;
  /** Aborts 3 s before the middleware `deadline` answers 503. */
  late: AbortSignal;
  /** Answers an error in place of the JSON of `errorBoundary`. */
  sendError?: (error: DomainError) => void;
  /** Code of the error answer, for the access log. */
  errorCode?: string;
  merchant?: Merchant;
  pageLocale?: Locale;
  pageBranding?: Branding;
  /** The parsed JSON body; undefined if the request has none. */
  body?: unknown;
}

export type Context = RouterContext<RequestState>;

export function callerOf(ctx: Context): Merchant {
  const { merchant } = ctx.state;
  if (merchant === undefined) throw new Error('this route is not behind authentication');
  return merchant;
}

export function pathParam(ctx: Context, name: string): string {
  return ctx.params[name] ?? '';
}
