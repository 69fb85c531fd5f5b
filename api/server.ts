import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { newId } from '../domain/ids.ts';
import { errorAnswer } from './answers.ts';
import type { RequestState } from './context.ts';
import type { ApiDeps } from './deps.ts';

export interface ApiServer extends Server {
  /**
   * Stops accepting connections. Every request that has begun gets its whole answer; then its connection
   * closes. An idle connection closes within 1 s; until then, requests that arrive on it are served. Resolves
   * when all connections are closed. Has no time limit of its own.
   */
  drain(): Promise<void>;
}

/** Each connection with its latest answer; null before its first request. */
type Connections = Map<Duplex, ServerResponse | null>;

/**
 * Returns an HTTP server for the app that does not listen yet. Input that is not valid HTTP does not reach
 * the app: the server answers it with an error body in the app's format. Rules: IF-7, D-§8.
 */
export function createApiServer(
  app: Koa<RequestState>,
  deps: Pick<ApiDeps, 'logger' | 'now' | 'random'>,
  options: ServerOptions = {},
): ApiServer {
  const handle = app.callback();
  const connections: Connections = new Map();
  let isDraining = false;
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    // No answer can follow an answer with `Connection: close`. A request after such an answer is not executed,
    // because the client could not learn its outcome.
    if (connections.get(request.socket)?.getHeader('Connection') === 'close') return;
    connections.set(request.socket, response);
    if (isDraining) makeLast(response);
    void handle(request, response);
  };
  // Node would answer a missing Host header without an error body. The app answers it with an error body.
  const server = createServer({ ...options, requireHostHeader: false }, listener);
  server.on('connection', (socket) => {
    connections.set(socket, null);
    socket.once('close', () => connections.delete(socket));
  });
  // A request with an unknown `Expect` header is handled like any other.
  server.on('checkExpectation', listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const answer = connections.get(socket);
    // An error answer must not be written into the middle of another answer.
    const isAnswering = answer?.headersSent === true && !answer.writableFinished;
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
    for (const answer of connections.values()) if (answer) makeLast(answer);
    return closeWhenIdle(server, connections);
  };
  return Object.assign(server, { drain });
}

/** Makes the connection close after this answer. */
function makeLast(answer: ServerResponse): void {
  if (!answer.headersSent) answer.setHeader('Connection', 'close');
}

/** Interval, in ms, between two checks for idle connections. */
const IDLE_CHECK_MS = 1_000;

function closeWhenIdle(server: Server, connections: Connections): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      for (const [socket, answer] of connections) {
        if (answer === null || answer.writableFinished) socket.destroy();
      }
    }, IDLE_CHECK_MS);
    // `http.Server.close` would close connections on which a request is arriving, and would wait for connections
    // that never send a request.
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
  const { status, text } = errorAnswer('bad_request', reason);
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
