import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../runtime/logger.ts';
import { errorAnswer, send } from '../answers.ts';
import type { Context } from '../context.ts';

/**
 * The one place where an error becomes an answer: what a caller may know is a {@link DomainError},
 * everything else is 503 when the database is out of reach and a mute 500 otherwise, logged with the
 * request's id. Rules: IF-7, D-§8.
 */
export function errorBoundary(logger: Logger) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    try {
      await next();
    } catch (thrown) {
      const error = toDomainError(thrown);
      if (error !== thrown) logFailure(logger, ctx, thrown);
      ctx.state.errorCode = error.code;
      if (error.retryAfterSeconds !== undefined) {
        ctx.set('Retry-After', String(error.retryAfterSeconds));
      }
      send(ctx, errorAnswer(error.code, error.message));
    }
  };
}

/** The error as the caller hears of it. */
export function toDomainError(thrown: unknown): DomainError {
  if (thrown instanceof DomainError) return thrown;
  if (isDatabaseOutOfReach(thrown)) {
    return new DomainError('service_unavailable', undefined, { cause: thrown });
  }
  return new DomainError('internal_server_error', undefined, { cause: thrown });
}

/**
 * Codes of a database that cannot serve now, of a lock, a statement or a pause that took too long,
 * and of two transactions in each other's way: repeating the request is right.
 */
const UNAVAILABLE_CODES =
  /^(08...|25P03|53...|57...|40...|55000|55P03|ECONN.*|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN|CONNECT.*)$/;

function isDatabaseOutOfReach(thrown: unknown): boolean {
  return chainOf(thrown).some(({ code }) => UNAVAILABLE_CODES.test(code));
}

/** Never the message of a database error: it holds the values of the statement. */
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

/** An error and what led to it, by name and code: safe to log. */
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
      code: typeof code === 'string' ? code : '',
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
