import { Pool } from 'undici';
import type { Dispatcher } from 'undici';

/** `answered`: completely. `not_sent`: no byte left. `broken`: the server may have received the request. */
export type Exchange =
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'broken'; readonly reason: string };

export interface ExchangeRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface ExchangeOptions {
  /** Base URL, to which the `path` of a request is appended. */
  readonly url: string;
  readonly bearer: string;
  /** Time limit in ms from the call to the last byte of the answer, with the wait for a connection. */
  readonly timeoutMs: number;
  /** Maximum number of connections. Further requests wait for a free connection. */
  readonly connections: number;
}

/** Time limit of a connect in ms. A request may take longer. */
const CONNECT_TIMEOUT_MS = 2_000;

/** Maximum size of an answer. A gateway's answers are much shorter. */
const ANSWER_LIMIT_BYTES = 1_048_576;

/**
 * Sends JSON over kept-alive connections. Never rejects, resolves within `timeoutMs`, never sends twice. Undici calls
 * `onRequestStart` before the first byte: only this tells whether a request left.
 */
export function createExchange(options: ExchangeOptions) {
  const base = new URL(options.url);
  const pool = new Pool(base.origin, {
    connections: options.connections,
    pipelining: 1,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    // The time limit of `send` replaces undici's own limits.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const prefix = base.pathname.replace(/\/$/, '');

  const send = (request: ExchangeRequest): Promise<Exchange> =>
    new Promise((resolve) => {
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
        receive(options.timeoutMs, resolve),
      );
    });

  return { send, close: () => pool.close() };
}

/** Ends one exchange at the first of these: an answer, an error, the time limit. */
function receive(
  timeoutMs: number,
  resolve: (exchange: Exchange) => void,
): Dispatcher.DispatchHandler {
  let controller: Dispatcher.DispatchController | undefined;
  let isSettled = false;
  let status = 0;
  let size = 0;
  const chunks: Buffer[] = [];

  const settle = (exchange: Exchange): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(deadline);
    resolve(exchange);
  };
  const giveUp = (reason: string): void => {
    settle({ kind: controller === undefined ? 'not_sent' : 'broken', reason });
    controller?.abort(new Error(reason));
  };
  const deadline = setTimeout(() => giveUp(`no answer within ${timeoutMs} ms`), timeoutMs);

  return {
    onRequestStart: (started) => {
      // The exchange ended as `not_sent` while it waited for a connection, so the request must not be sent.
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
