import type { IncomingMessage } from 'node:http';
import { DomainError } from '../../domain/errors.ts';
import type { Context } from '../context.ts';
import type { Operation } from '../openapi/operation.ts';

/** Rule: D-10. */
const BODY_LIMIT_BYTES = 65_536;

const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH']);

/**
 * Reads the request body: JSON in UTF-8, at most 64 kB. Any other body is answered 400 `bad_request`. The
 * body may be absent only if the route declares it optional. Rules: D-10, D-14.
 */
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
  if (!/^application\/json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(contentType)) {
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
 * Returns the body as text. Throws `bad_request` for more than `limitBytes` and for bytes that are not
 * UTF-8. The server's `requestTimeout` limits the duration.
 */
export async function readText(request: IncomingMessage, limitBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  // The stream must stay open, because a refusal is sent on the same connection.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > limitBytes) throw bodyProblem(`must be at most ${limitBytes / 1024} kB`);
    chunks.push(chunk);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw bodyProblem('must be UTF-8');
  }
}

function bodyProblem(problem: string): DomainError {
  return new DomainError('bad_request', `body: ${problem}`);
}
