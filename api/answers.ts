import { DomainError, ERRORS } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Context } from './context.ts';

/** An HTTP answer with a body of type `Body`. It is stored under an Idempotency-Key and replayed. */
export interface Answer<out Body = unknown> {
  readonly status: number;
  /** JSON text; empty for 204. */
  readonly text: string;
  /** The answer of an earlier call with the same key. */
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

export function send(ctx: Context, answer: Answer): void {
  if (answer.isReplayed) ctx.set('Idempotent-Replayed', 'true');
  ctx.status = answer.status;
  if (answer.status === 204) return;
  ctx.type = 'application/json';
  ctx.body = answer.text;
}

/** Also used for another merchant's record, so that both answers are identical. Rule: D-21. */
export function notFound(record: string): DomainError {
  return new DomainError('resource_not_found', `There is no such ${record}.`);
}
