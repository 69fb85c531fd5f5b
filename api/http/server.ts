import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as TcpServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { newId } from '../../domain/ids.ts';
import { errorAnswer } from './request.ts';
import type { Context, RequestState } from './request.ts';
import type { ApiDeps } from '../deps.ts';

export interface ApiServer extends Server {
  /**
   * Stops accepting connections. Requests that have begun get their whole answer. An idle connection closes within 1
   * s, as does a client that reads nothing. Has no other time limit.
   */
  drain(): Promise<void>;
}

export interface ApiServerOptions extends ServerOptions {
  /** Time in ms without progress after which a client that does not read its answer is disconnected. Default 15 s. */
  readonly writeTimeoutMs?: number;
  /** The same during a drain. Node may need twice this time to see that the client reads nothing. Default 0.5 s. */
  readonly drainWriteTimeoutMs?: number;
}

/**
 * Most requests of one connection whose answers are not sent. Bounds the memory of a client that does not read. Node's
 * `maxRequestsPerSocket` would end every connection after this number of requests.
 */
const MAX_UNANSWERED = 16;

interface Connection {
  /** Null before the first request. */
  latest: ServerResponse | null;
  /** The answers that are not completely sent, in the order of their requests. */
  readonly unsent: Set<ServerResponse>;
  /** Begin the requests that wait for the answer to an earlier request, in their order. */
  readonly waiting: (() => void)[];
}

type Connections = Map<Duplex, Connection>;

/**
 * Returns an HTTP server for the app that does not listen yet. Input that is not valid HTTP does not reach
 * the app: the server answers it with an error body in the app's format.
 */
export function createApiServer(
  app: Koa<RequestState>,
  deps: Pick<ApiDeps, 'logger' | 'now' | 'random'>,
  { writeTimeoutMs = 15_000, drainWriteTimeoutMs = 500, ...options }: ApiServerOptions = {},
): ApiServer {
  const handle = app.callback();
  const connections: Connections = new Map();
  let isDraining = false;
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connections.get(request.socket);
    // No answer can follow an answer with `Connection: close`. A request after such an answer is not executed,
    // because the client could not learn its outcome.
    if (connection === undefined || connection.latest?.getHeader('Connection') === 'close') return;
    const begin = (): void => {
      // After an answer with `Connection: close` the connection is not writable.
      if (request.socket.writable) void handle(request, response);
    };
    connection.latest = response;
    connection.unsent.add(response);
    const isLast = isDraining || connection.unsent.size >= MAX_UNANSWERED;
    if (isLast) response.setHeader('Connection', 'close');
    response.once('close', () => {
      connection.unsent.delete(response);
      const next = connection.waiting.shift();
      // Other connections and a stop signal get their turn before the next request of this connection.
      if (next) setImmediate(next);
    });
    if (connection.unsent.size === 1) begin();
    else connection.waiting.push(begin);
  };
  // Node would answer a missing Host header without an error body. The app answers it with an error body.
  const server = createServer({ ...options, requireHostHeader: false }, listener);
  server.on('connection', (socket) => {
    connections.set(socket, { latest: null, unsent: new Set(), waiting: [] });
    socket.once('close', () => connections.delete(socket));
  });
  server.setTimeout(writeTimeoutMs, (socket) => closeUnlessWorking(socket, connections, server));
  // A request with an unknown `Expect` header is handled like any other.
  server.on('checkExpectation', listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const unsent = [...(connections.get(socket)?.unsent ?? [])];
    // An error answer must not be written into the middle of another answer.
    const isAnswering = unsent.some((answer) => answer.headersSent && !answer.writableFinished);
    if (isAnswering || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const requestId = newId('req', deps.now(), deps.random);
    socket.end(unreadable(requestId, reasonOf(error)), () => socket.destroy());
    deps.logger.info({ requestId, status: 400, code: error.code }, 'unreadable request');
  });
  const drain = (): Promise<void> => {
    isDraining = true;
    for (const { unsent } of connections.values()) {
      const last = [...unsent].find(({ headersSent }) => !headersSent);
      last?.setHeader('Connection', 'close');
    }
    server.timeout = drainWriteTimeoutMs;
    for (const socket of connections.keys()) (socket as Socket).setTimeout(drainWriteTimeoutMs);
    return closeWhenIdle(server, connections);
  };
  return Object.assign(server, { drain });
}

/**
 * Closes a connection that was silent for its time limit, if its client does not read or no request is being received
 * or handled.
 */
function closeUnlessWorking(socket: Socket, connections: Connections, server: Server): void {
  const connection = connections.get(socket);
  const isStalled = socket.writableLength > 0;
  const isIdle = connection?.latest !== null && connection?.unsent.size === 0;
  if (isStalled || isIdle) socket.destroy();
  else socket.setTimeout(server.timeout);
}

/** Interval, in ms, between two checks for idle connections. */
const IDLE_CHECK_MS = 1_000;

function closeWhenIdle(server: Server, connections: Connections): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      for (const [socket, { unsent }] of connections) if (unsent.size === 0) socket.destroy();
    }, IDLE_CHECK_MS);
    // `http.Server.close` would close connections on which a request is arriving, would wait for connections that never
    // send a request, and would end the checks of `requestTimeout`. No setting changes this.
    TcpServer.prototype.close.call(server, (error) => {
      clearInterval(timer);
      if (error) reject(error);
      else resolve();
    });
  });
}

function reasonOf({ code }: NodeJS.ErrnoException): string {
  if (code === 'HPE_HEADER_OVERFLOW') return 'The address and the headers are too long.';
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'The request did not arrive in time.';
  return 'The request is not valid HTTP.';
}

function unreadable(requestId: string, reason: string): string {
  const { status, text } = errorAnswer({ code: 'bad_request', message: reason });
  return [
    `HTTP/1.1 ${status} Bad Request`,
    `Request-Id: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    text,
  ].join('\r\n');
}

interface DiscardLimits {
  readonly bytes: number;
  readonly ms: number;
}

/** Limits before the answer. A refused body is usually shorter, so its connection is kept. */
const BEFORE_ANSWER: DiscardLimits = { bytes: 1_048_576, ms: 500 };
/** Limits after an answer that closes the connection. */
const AFTER_ANSWER: DiscardLimits = { bytes: 32 * 1_048_576, ms: 3_000 };

/**
 * Discards an unread body, behind which the next request would wait: up to 1 MB and 500 ms before the answer, else 32
 * MB and 3 s after an answer that closes the connection.
 */
export function unreadBody() {
  return async (ctx: Context, next: () => Promise<unknown>): Promise<void> => {
    await next();
    if (await hasEnded(ctx.req)) return;
    ctx.set('Connection', 'close');
    closeAfterBody(ctx.req);
  };
}

async function hasEnded(request: IncomingMessage): Promise<boolean> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (!request.complete && announced > BEFORE_ANSWER.bytes) return false;
  return discardBody(request, BEFORE_ANSWER);
}

/**
 * Discards the body before the socket closes. Node calls `destroySoon` after a connection's last answer. With unread bytes the
 * system then resets the connection, and the client may lose the answer. Node's settings for the server limit times, headers
 * and requests of a connection; none delays this close.
 */
function closeAfterBody(request: IncomingMessage): void {
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    void discardBody(request, AFTER_ANSWER).then(() => Socket.prototype.destroySoon.call(socket));
  };
}

/** Returns whether the body ended within the limits. Does not throw, even if the connection is lost. */
function discardBody(request: IncomingMessage, limits: DiscardLimits): Promise<boolean> {
  // A refused body is paused. A paused body blocks its connection, even if it has arrived completely.
  request.resume();
  if (request.complete || request.destroyed) return Promise.resolve(request.complete);
  return new Promise((resolve) => {
    let bytes = 0;
    const count = (chunk: Buffer): void => {
      bytes += chunk.length;
      if (bytes > limits.bytes) stop();
    };
    const stop = (): void => {
      clearTimeout(timer);
      request.off('data', count).off('end', stop).off('close', stop);
      resolve(request.complete);
    };
    const timer = setTimeout(stop, limits.ms);
    request.on('data', count).on('end', stop).on('close', stop);
  });
}
