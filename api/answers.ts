import { DomainError, ERRORS } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import { checkUnanswered } from '../runtime/request-scope.ts';
import type { Context } from './context.ts';

/** An HTTP answer with a body of type `Body`, in the form in which an Idempotency-Key stores it. */
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

/** Rule: D-16. */
export const NO_CONTENT: Answer<never> = { status: 204, text: '' };

/** Rule: IF-7. */
export function errorAnswer(code: ErrorCode, description: string): Answer {
  return {
    status: ERRORS[code].status,
    text: JSON.stringify({ errorCode: code, errorDescription: description }),
  };
}

/** Throws if the request was answered at its deadline. */
export function send(ctx: Context, answer: Answer): void {
  checkUnanswered();
  if (answer.isReplayed) ctx.set('Idempotent-Replayed', 'true');
  ctx.status = answer.status;
  if (answer.status === 204) return;
  ctx.type = 'application/json';
  ctx.body = answer.text;
}

/** The same error for an unknown record and for another merchant's record. Rule: D-21. */
export function notFound(record: string): DomainError {
  return new DomainError('resource_not_found', `There is no such ${record}.`);
}

type WithoutNulls<T> = { [Name in keyof T]?: NonNullable<T[Name]> };

/** The fields that have a value. An answer omits the others. Rule: D-10a. */
export function withoutNulls<T extends object>(fields: T): WithoutNulls<T> {
  // Only the fields of T that are not null are left, so the cast is safe.
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== null),
  ) as WithoutNulls<T>;
}
