import { DomainError, ERRORS } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import type { Context } from './context.ts';

/** An HTTP answer: status and exact body. It is stored under an Idempotency-Key and replayed. */
export interface Answer {
  readonly status: number;
  /** JSON text; empty for 204. */
  readonly body: string;
}

export function ok(body: unknown): Answer {
  return { status: 200, body: JSON.stringify(body) };
}

/** Rule: D-16. */
export const NO_CONTENT: Answer = { status: 204, body: '' };

/** Rule: IF-7. */
export function errorAnswer(code: ErrorCode, description: string): Answer {
  return {
    status: ERRORS[code].status,
    body: JSON.stringify({ errorCode: code, errorDescription: description }),
  };
}

export function send(ctx: Context, answer: Answer): void {
  ctx.status = answer.status;
  if (answer.status === 204) return;
  ctx.type = 'application/json';
  ctx.body = answer.body;
}

/** Also used for another merchant's record, so that both answers are identical. Rule: D-21. */
export function notFound(record: string): DomainError {
  return new DomainError('resource_not_found', `There is no such ${record}.`);
}
