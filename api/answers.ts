import { formatInstant } from '../domain/calendar.ts';
import { DomainError, ERRORS } from '../domain/errors.ts';
import type { RefusalReason } from '../domain/errors.ts';
import { checkUnanswered } from '../runtime/request-scope.ts';
import type { Context } from './context.ts';

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

export const NO_CONTENT: Answer<never> = { status: 204, text: '' };

export function errorAnswer({ code, message, retryAt }: RefusalReason): Answer {
  const body = {
    errorCode: code,
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
