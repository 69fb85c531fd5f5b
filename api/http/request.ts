import type { ServerResponse } from 'node:http';
import type { RouterContext } from '@koa/router';
import type { MerchantMode, MerchantSettings } from '../../db/schema/merchants.ts';
import type { RefusalReason } from '../../domain/errors.ts';
import type { Locale } from '../../domain/locales.ts';
import { formatInstant } from '../../domain/calendar.ts';
import { DomainError, ERRORS, shownCode } from '../../domain/errors.ts';
import { checkUnanswered } from '../../runtime/request-scope.ts';

/** The caller: one merchant in one mode. A request reads and writes only this merchant's records. */
export interface Merchant {
  readonly id: string;
  readonly mode: MerchantMode;
  /** True: the credential may not change anything. */
  readonly isReadOnly: boolean;
}

/** The merchant of a hosted page. */
export interface PageMerchant {
  readonly id: string;
  readonly name: string;
  readonly settings: Pick<MerchantSettings, 'branding'>;
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
  pageMerchant?: PageMerchant;
  /** The parsed JSON body; undefined if the request has none. */
  body?: unknown;
}

export type Context = RouterContext<RequestState>;

export function callerOf(ctx: Context): Merchant {
  const { merchant } = ctx.state;
  if (merchant === undefined) throw new Error('this route is not behind authentication');
  return merchant;
}

/** Returns a signal that aborts when the response is sent or its connection is closed. */
export function closeSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  if (response.destroyed) closed.abort();
  else response.once('close', () => closed.abort());
  return closed.signal;
}

export function pathParam(ctx: Context, name: string): string {
  return ctx.params[name] ?? '';
}

/** An HTTP answer with a body of type `Body`. `status` and `text` are stored under the Idempotency-Key, if any. */
export interface Answer<out Body = unknown> {
  readonly status: number;
  /** JSON text; empty for 204. */
  readonly text: string;
  /** True if an earlier call with the same key stored this answer. */
  readonly isReplayed?: true;
  /** Never set. Lets the compiler compare a handler's answer with the declared schema. */
  readonly body?: Body;
}

export function ok<Body>(body: Body): Answer<Body> {
  return { status: 200, text: JSON.stringify(body) };
}

/** The work has begun, and goes on after the answer. */
export function accepted<Body>(body: Body): Answer<Body> {
  return { status: 202, text: JSON.stringify(body) };
}

export const NO_CONTENT: Answer<never> = { status: 204, text: '' };

export function errorAnswer({ code, message, retryAt }: RefusalReason): Answer {
  const body = {
    errorCode: shownCode(code),
    errorDescription: message,
    ...(retryAt !== undefined && { retryAt: formatInstant(retryAt) }),
  };
  return { status: ERRORS[code].status, text: JSON.stringify(body) };
}

/** Sends the answer. Throws `service_unavailable` if the middleware `deadline` has already answered the request. */
export function send(ctx: Context, answer: Answer): void {
  checkUnanswered();
  if (answer.isReplayed) ctx.set('Idempotent-Replayed', 'true');
  ctx.status = answer.status;
  if (answer.status === 204) return;
  ctx.type = 'application/json';
  ctx.body = answer.text;
}

/** Returns the same error for an unknown record and for another merchant's record. */
export function notFound(record: string): DomainError {
  return new DomainError('resource_not_found', `There is no such ${record}.`);
}

export function found<T>(record: T | null, name: string): T {
  if (record === null) throw notFound(name);
  return record;
}

type WithoutNulls<T> = { [Name in keyof T]?: NonNullable<T[Name]> };

export function withoutNulls<T extends object>(fields: T): WithoutNulls<T> {
  // The cast is safe, because the filter leaves only fields of T that are not null.
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null),
  ) as WithoutNulls<T>;
}
