import { Pool } from 'undici';
import type { Dispatcher } from 'undici';

/**
 * The result of one HTTP request, by what the other side may have seen:
 * - `answered`: the whole answer arrived.
 * - `not_sent`: no byte left this process.
 * - `broken`: the request left, in part or in whole, and no whole answer came back.
 */
export type Exchange =
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'broken'; readonly reason: string };

export interface ExchangeRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

export interface ExchangeOptions {
  /** Base URL; `path` of a request is appended. */
  readonly url: string;
  readonly bearer: string;
  /** Time limit from the call to the last byte of the answer. Includes the wait for a connection. */
  readonly timeoutMs: number;
  /** Most connections. Further requests wait for a free connection. */
  readonly connections: number;
}

/** Shorter than the wait for an answer, so that an unreachable host is reported early. */
const CONNECT_TIMEOUT_MS = 2_000;

/** A gateway's answers are small. A larger body is not one. */
const ANSWER_LIMIT_BYTES = 1_048_576;

/**
 * JSON over kept-alive connections. `send` never rejects and always settles within `timeoutMs`. Undici
 * reports the moment before it writes the first byte, so `send` knows without a list of error codes
 * whether a request left. No request is ever sent twice.
 */
export function createExchange(options: ExchangeOptions) {
  const base = new URL(options.url);
  const pool = new Pool(base.origin, {
    connections: options.connections,
    pipelining: 1,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // The deadline of `send` replaces undici's own.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const prefix = base.pathname.replace(/\/$/, '');

  const send = (request: ExchangeRequest): Promise<Exchange> =>
    new Promise((resolve) => {
      const reception = receive(options.timeoutMs, request.signal, resolve);
      if (reception === null) return;
      pool.dispatch(
        {
          method: request.method,
          path: prefix + request.path,
          headers: {
            authorization: `Bearer ${options.bearer}`,
            ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
            ...request.headers,
          },
          body: request.body === undefined ? null : JSON.stringify(request.body),
        },
        reception,
      );
    });

  return { send, close: () => pool.close() };
}

/** Settles one exchange, once: by an answer, an error, the deadline or the caller's signal. */
function receive(
  timeoutMs: number,
  signal: AbortSignal | undefined,
  resolve: (exchange: Exchange) => void,
): Dispatcher.DispatchHandler | null {
  if (signal?.aborted === true) {
    resolve({ kind: 'not_sent', reason: 'given up before it was sent' });
    return null;
  }
  let controller: Dispatcher.DispatchController | undefined;
  let isSettled = false;
  let status = 0;
  let size = 0;
  const chunks: Buffer[] = [];

  const settle = (exchange: Exchange): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(deadline);
    signal?.removeEventListener('abort', onAbort);
    resolve(exchange);
  };
  const giveUp = (reason: string): void => {
    settle({ kind: controller === undefined ? 'not_sent' : 'broken', reason });
    controller?.abort(new Error(reason));
  };
  const onAbort = (): void => giveUp('the caller gave up');
  const deadline = setTimeout(() => giveUp(`no answer within ${timeoutMs} ms`), timeoutMs);
  signal?.addEventListener('abort', onAbort);

  return {
    onRequestStart: (started) => {
      // The request was reported as not sent while it waited for a connection, so it must not leave.
      if (isSettled) started.abort(new Error('given up before it was sent'));
      else controller = started;
    },
    onResponseStart: (_controller, statusCode) => {
      status = statusCode;
    },
    onResponseData: (_controller, chunk) => {
      size += chunk.length;
      if (size > ANSWER_LIMIT_BYTES) giveUp('the answer is too large');
      else chunks.push(chunk);
    },
    onResponseEnd: () => settle({ kind: 'answered', status, body: parse(chunks) }),
    onResponseError: (_controller, error) => giveUp(describe(error)),
  };
}

/** Undefined when the body is not JSON. */
function parse(chunks: readonly Buffer[]): unknown {
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    return undefined;
  }
}

function describe(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === undefined ? error.message : `${code}: ${error.message}`;
}
