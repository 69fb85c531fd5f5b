import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type Koa from 'koa';
import { newId } from '../domain/ids.ts';
import { errorAnswer } from './answers.ts';
import type { RequestState } from './context.ts';
import type { ApiDeps } from './deps.ts';

/**
 * The app as an HTTP server that does not listen yet. What is no request at all never reaches the
 * app, and is refused here in the same words as everything else. Rules: IF-7, D-§8.
 */
export function createApiServer(
  app: Koa<RequestState>,
  deps: Pick<ApiDeps, 'logger' | 'now' | 'random'>,
  options: ServerOptions = {},
): Server {
  const handle = app.callback();
  /** The latest answer of each connection: nothing may be written into the middle of one. */
  const answers = new WeakMap<Duplex, ServerResponse>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    answers.set(request.socket, response);
    void handle(request, response);
  };
  const server = createServer(options, listener);
  // An expectation that nobody knows changes nothing about the request.
  server.on('checkExpectation', listener);
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const answer = answers.get(socket);
    const isAnswering = answer?.headersSent === true && !answer.writableFinished;
    if (isAnswering || !socket.writable || error.code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    const requestId = newId('req', deps.now(), deps.random);
    socket.end(unreadable(requestId, reasonOf(error)), () => socket.destroy());
    deps.logger.info({ requestId, status: 400, code: error.code }, 'unreadable request');
  });
  return server;
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
