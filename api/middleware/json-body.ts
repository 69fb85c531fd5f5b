import type { IncomingMessage } from 'node:http';
import rawBody from 'raw-body';
import type { RawBodyError } from 'raw-body';
import { DomainError } from '../../domain/errors.ts';
import type { Context } from '../context.ts';
import type { Operation } from '../openapi/operation.ts';

const BODY_LIMIT_BYTES = 524_288;

const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/** JSON in UTF-8, at most 512 kB. The body may be absent only if the route declares it optional. */
export function jsonBody(routes: readonly Operation[]) {
  const bodyIsOptional = new Set(
    routes
      .filter(({ body }) => body?.isOptional)
      .map(({ method, path }) => `${method.toUpperCase()} ${path}`),
  );
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const isOptional = bodyIsOptional.has(ctx.state.route ?? '');
    if (METHODS_WITH_BODY.has(ctx.method) && !(isOptional && isEmpty(ctx.req))) {
      ctx.state.body = await readJson(ctx.req);
    }
    await next();
  };
}

function isEmpty({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'] ?? '0';
  return headers['transfer-encoding'] === undefined && length === '0';
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const contentType = request.headers['content-type'] ?? '';
  if (!/^application\/json\s*(;\s*charset="?utf-?8"?\s*)?$/i.test(contentType)) {
    throw bodyProblem('must be sent with Content-Type: application/json');
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw bodyProblem('must be sent without Content-Encoding');
  }
  const text = await readText(request, BODY_LIMIT_BYTES);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw bodyProblem('must be valid JSON');
  }
}

/**
 * Returns the body as text.
 * @throws DomainError `bad_request` for more than `limitBytes`, for a body that ends too early, and for bytes that
 * are not UTF-8.
 */
export async function readText(request: IncomingMessage, limitBytes: number): Promise<string> {
  const bytes = await readBytes(request, limitBytes);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw bodyProblem('must be UTF-8');
  }
}

/** Returns the raw body. Throws `bad_request` for more than `limitBytes`, and for a body that ends too early. */
export async function readBytes(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  try {
    const length = request.headers['content-length'] ?? null;
    return await rawBody(request, { limit: limitBytes, length });
  } catch (error) {
    const isTooLarge = (error as RawBodyError).type === 'entity.too.large';
    if (isTooLarge) throw bodyProblem(`must be at most ${limitBytes / 1024} kB`);
    // The client closed the connection, so it does not get this answer.
    if (request.destroyed) throw bodyProblem('must arrive completely');
    throw error;
  }
}

function bodyProblem(problem: string): DomainError {
  return new DomainError('bad_request', `body: ${problem}`);
}
