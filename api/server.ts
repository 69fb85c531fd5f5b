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
   * Takes no new connection and gives every request that has begun its whole answer, the last on its
   * connection. A connection without a request is closed within 2 s, and serves the one that is just
   * on its way. Resolves when no connection is left, which is not bounded here.
   */
  drain(): Promise<void>;
}

/** Connections with their latest answer: null before the first request. */
type Connections = Map<Duplex, ServerResponse | null>;

/**
 * The app as an HTTP server that does not listen yet. What is no request at all never reaches the
 * app, and is refused here in the same words as everything else. Rules: IF-7, D-§8.
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
    connections.set(request.socket, response);
    if (isDraining) makeLast(response);
    void handle(request, response);
  };
  const server = createServer(options, listener);
  server.on('connection', (socket) => {
    connections.set(socket, null);
    socket.once('close', () => connections.delete(socket));
  });
  // An expectation that nobody knows changes nothing about the request.
  server.on('checkExpectation', listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const answer = connections.get(socket);
    // Nothing may be written into the middle of an answer.
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
    return closeWhenQuiet(server, connections);
  };
  return Object.assign(server, { drain });
}

/** Has the connection closed behind this answer, and the client told so. */
function makeLast(answer: ServerResponse): void {
  if (!answer.headersSent) answer.setHeader('Connection', 'close');
}

/** Looks this often for connections on which nothing is under way. */
const QUIET_MS = 1_000;

function closeWhenQuiet(server: Server, connections: Connections): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      for (const [socket, answer] of connections) {
        if (answer === null || answer.writableFinished) socket.destroy();
      }
    }, QUIET_MS);
    // An HTTP server's own close cuts off at once who may be sending, and waits for who never does.
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
  const { status, body } = errorAnswer('bad_request', reason);
  return [
    `HTTP/1.1 ${status} Bad Request`,
    `Request-Id: ${requestId}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
