import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../runtime/logger.ts';
import { errorAnswer, send } from '../answers.ts';
import type { Context } from '../context.ts';

/**
 * Turns an error into an answer. Other errors than {@link DomainError} are answered 503 with one of the {@link
 * UNAVAILABLE_CODES}, else 500, without details. The log has the cause under the request's id.
 */
export function errorBoundary(logger: Logger) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    try {
      await next();
    } catch (thrown) {
      const error = toDomainError(thrown);
      if (error.cause !== undefined) logFailure(logger, ctx, error.cause);
      ctx.state.errorCode = error.code;
      const { retryAfterSeconds } = error;
      if (retryAfterSeconds !== undefined) ctx.set('Retry-After', String(retryAfterSeconds));
      if (ctx.state.sendError) ctx.state.sendError(error);
      else send(ctx, errorAnswer(error));
    }
  };
}

/** Without a DomainError in `thrown`, the returned error has `thrown` as its cause. */
export function toDomainError(thrown: unknown): DomainError {
  // Drizzle wraps every error of a statement, also a DomainError that `checkUnanswered` throws.
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof DomainError) return error;
  }
  if (isDatabaseOutOfReach(thrown)) {
    return new DomainError('service_unavailable', undefined, { cause: thrown });
  }
  return new DomainError('internal_server_error', undefined, { cause: thrown });
}

/**
 * SQLSTATE and socket codes after which a repeat of the request may succeed: the database is unavailable or
 * read-only, a lock, statement or idle transaction timed out, or two transactions conflicted.
 */
const UNAVAILABLE_CODES =
  /^(08...|25006|25P03|53...|57...|40...|55000|55P03|ECONN.*|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|CONNECT.*)$/;

function isDatabaseOutOfReach(thrown: unknown): boolean {
  return chainOf(thrown).some(({ code }) => UNAVAILABLE_CODES.test(code));
}

/** Logs an error. Omits the message of a database error, because it may contain the statement's values. */
export function logFailure(logger: Logger, ctx: Context, thrown: unknown): void {
  const isFromDatabase = chainOf(thrown).some(({ name }) =>
    /DrizzleQueryError|PostgresError/.test(name),
  );
  const { requestId, route } = ctx.state;
  logger.error(
    {
      requestId,
      route,
      causes: causesOf(thrown),
      frames: framesOf(thrown),
      ...(isFromDatabase || !(thrown instanceof Error) ? {} : { message: thrown.message }),
    },
    'request failed',
  );
}

/**
 * Returns the names and codes of an error and its causes, at most five. Unlike messages, they never contain the
 * values of an SQL statement. A code of Temporal is a gRPC status.
 */
export function causesOf(thrown: unknown): string[] {
  return chainOf(thrown).map(({ name, code }) => (code === '' ? name : `${name} ${code}`));
}

function chainOf(thrown: unknown): { name: string; code: string }[] {
  const causes: { name: string; code: string }[] = [];
  let error = thrown;
  while (error instanceof Error && causes.length < 5) {
    const code = 'code' in error ? error.code : undefined;
    causes.push({
      name: error.constructor.name,
      code: typeof code === 'string' || typeof code === 'number' ? String(code) : '',
    });
    error = error.cause;
  }
  return causes;
}

function framesOf(thrown: unknown): string[] {
  if (!(thrown instanceof Error)) return [];
  const lines = thrown.stack?.split('\n') ?? [];
  return lines.filter((line) => /^\s+at /.test(line)).map((line) => line.trim());
}
