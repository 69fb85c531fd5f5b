import type { Context, RequestState } from './request.ts';
import { newId } from '../../domain/ids.ts';
import type { ApiDeps } from '../deps.ts';
import type { Subject } from '../../runtime/tracing.ts';
import { DomainError } from '../../domain/errors.ts';
import type { Logger } from '../../runtime/logger.ts';
import { errorAnswer, send } from './request.ts';
import { insideRequest } from '../../runtime/request-scope.ts';
import type { Router } from '@koa/router';
import { INTENT_PARAMETER, INTENT_PATH } from '../../runtime/payer-links.ts';

/** No URL, header or body is logged: the URL of a hosted page contains its token. */
export function accessLog({ logger, onAnswer }: Pick<ApiDeps, 'logger' | 'onAnswer'>) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const startedAt = performance.now();
    await next();
    const { requestId, route, merchant, errorCode } = ctx.state;
    const ms = performance.now() - startedAt;
    onAnswer?.({ route: route ?? 'none', status: String(ctx.status) }, ms / 1_000);
    logger.info(
      {
        requestId,
        route: route ?? `${ctx.method} (no route)`,
        status: ctx.status,
        ms: Math.round(ms),
        ...(merchant === undefined ? {} : { merchantId: merchant.id }),
        ...(errorCode === undefined ? {} : { errorCode }),
      },
      'request',
    );
  };
}

/** A span for each request, named by its route, because the path of a hosted page contains its token. */
export function traceRequests({ trace = (_describe, work) => work() }: Pick<ApiDeps, 'trace'>) {
  return (ctx: Context, next: () => Promise<unknown>): Promise<unknown> =>
    trace(
      () => ({
        ...subjectOf(ctx.body),
        name: ctx.state.route ?? `${ctx.method} (no route)`,
        attributes: {
          'http.request.method': ctx.method,
          'http.response.status_code': ctx.status,
          'perennial.request_id': ctx.state.requestId,
        },
      }),
      next,
    );
}

/** Returns what the answer is about; nothing for a page. */
function subjectOf(body: unknown): Subject {
  if (typeof body !== 'string' || !body.startsWith('{')) return {};
  const { subscriptionId, xIntentId } = JSON.parse(body) as Record<string, unknown>;
  if (typeof subscriptionId === 'string') return { subscriptionId };
  return typeof xIntentId === 'string' ? { intentId: xIntentId } : {};
}

export function requestId({ now, random }: Pick<ApiDeps, 'now' | 'random'>) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    ctx.state.requestId = newId('req', now(), random);
    ctx.state.route = null;
    ctx.set('Request-Id', ctx.state.requestId);
    await next();
  };
}

const HSTS_MAX_AGE_S = 63_072_000;

const HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'X-Frame-Options': 'DENY',
  'X-Content-Type-Options': 'nosniff',
  // The URL of a hosted page contains a bearer token, which must not reach other sites.
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
  'X-Robots-Tag': 'noindex, nofollow',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), microphone=(), geolocation=(), payment=(self)',
};

/**
 * Sets the security headers of every answer. A hosted page replaces the Content-Security-Policy.
 * Strict-Transport-Security is sent only if the public URL is https, because a browser that received the
 * header refuses http for two years.
 */
export function securityHeaders(publicUrl: string) {
  const isHttps = publicUrl.startsWith('https:');
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    ctx.set(HEADERS);
    if (isHttps) {
      ctx.set('Strict-Transport-Security', `max-age=${HSTS_MAX_AGE_S}; includeSubDomains`);
    }
    await next();
  };
}

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

/**
 * Time in ms after which `late` aborts. Longer than the wait for an outcome (25 s) and a call of Temporal that begins
 * at its end (4.5 s).
 */
const LATE_AFTER_MS = 32_000;
/** Grace period in ms to void the order and answer. 32 s + 3 s is less than the lease of an Idempotency-Key (45 s). */
const GRACE_MS = 3_000;

/**
 * Answers 503 after 35 s. The request then begins nothing more, and its open transaction is rolled back.
 * `ctx.state.late` aborts 3 s before, to void an order that has no key.
 */
export function deadline(lateAfterMs: number = LATE_AFTER_MS, graceMs: number = GRACE_MS) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const late = new AbortController();
    const answered = new AbortController();
    ctx.state.late = late.signal;
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        late.abort();
        // The second timer starts here, so that a suspended process still grants the whole grace period.
        timer = setTimeout(() => {
          answered.abort();
          reject(new DomainError('service_unavailable'));
        }, graceMs);
      }, lateAfterMs);
    });
    try {
      await Promise.race([insideRequest(answered.signal, next), over]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const PATH_SHOWN_MAX = 200;

/**
 * Refuses a request that no route serves: 404, or 405 with `Allow`. Credentials are checked first. A literal route
 * takes precedence, so `create` in `/customer/create` is never read as an id.
 */
export function knownRoute(
  routers: readonly Router<RequestState>[],
  check: (ctx: Context) => Promise<void>,
) {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    const serving = routers
      .flatMap((router) => router.match(ctx.path, ctx.method).path)
      .filter((layer) => layer.methods.length > 0);
    const literal = serving.filter((layer) => layer.paramNames.length === 0);
    const routes = literal.length > 0 ? literal : serving;
    const route = routes.find((layer) => layer.methods.includes(ctx.method));
    // Wrong credentials get 401 on every path. A payer who mistypes a URL sends no credentials and gets 404.
    if (route === undefined && ctx.get('Authorization') !== '') await check(ctx);
    if (routes.length === 0) {
      const path = ctx.path.slice(0, PATH_SHOWN_MAX);
      throw new DomainError('route_not_found', `There is no ${ctx.method} ${path}.`);
    }
    if (route === undefined) {
      ctx.set('Allow', [...new Set(routes.flatMap((layer) => layer.methods))].join(', '));
      throw new DomainError('method_not_allowed');
    }
    ctx.state.route = `${ctx.method} ${String(route.path)}`;
    await next();
  };
}

/** Lets the route of {@link INTENT_PATH} answer `/?xpay_intent_id=<id>`. */
export async function intentAddress(ctx: Context, next: () => Promise<unknown>): Promise<void> {
  const isRead = ctx.method === 'GET' || ctx.method === 'HEAD';
  if (isRead && ctx.path === '/' && ctx.query[INTENT_PARAMETER] !== undefined) {
    ctx.path = INTENT_PATH;
  }
  await next();
}

/** Refuses an HTTP/1.1 request without a Host header, as HTTP demands, and a URL without a path, with 400. */
export async function readableHead(ctx: Context, next: () => Promise<unknown>): Promise<void> {
  const { httpVersion, headers } = ctx.req;
  if (httpVersion === '1.1' && headers.host === undefined) {
    throw new DomainError('bad_request', 'The request has no Host header.');
  }
  if (!hasPath(ctx)) throw new DomainError('bad_request', 'The request has no valid URL.');
  await next();
}

/** Koa has no path for a URL such as `foo://bar`, and throws for `http://[/`. */
function hasPath(ctx: Context): boolean {
  try {
    return typeof ctx.path === 'string';
  } catch {
    return false;
  }
}
