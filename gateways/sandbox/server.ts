import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openBook } from './book-schema.ts';
import { createCardBook } from './card-book.ts';
import { createChargeBook } from './charge-book.ts';
import { controlRoutes } from './control-routes.ts';
import { createFaults } from './faults.ts';
import { json, refusal, RequestRefused, writeAnswer } from './http.ts';
import type { Access, Reply, Route } from './http.ts';
import { paymentRoutes } from './payment-routes.ts';
import { tokeniserRoute } from './tokeniser.ts';

export interface SandboxGatewayOptions {
  readonly databaseUrl: string;
  /** Bearer token of every route except the tokeniser and the health check. */
  readonly apiKey: string;
  /** The origins to which the tokeniser may redirect a browser. Read at every request. */
  readonly allowedReturnOrigins: readonly string[];
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. `SandboxGateway.url` contains the port. */
  readonly port?: number;
  /** Clock for token and card expiry, epoch ms. Default: real time. */
  readonly now?: () => number;
  /** Called for every error that is answered 500. The error's message may contain values of the request. */
  readonly onFailure?: (error: unknown, route: string) => void;
}

export interface SandboxGateway {
  /** The origin at which the gateway listens. */
  readonly url: string;
  /** Refuses new requests, waits at most 3 s for running ones, and disconnects from the database. */
  close(): Promise<void>;
}

/** Time limit in ms for a client to send the headers, and to send the whole request. */
const REQUEST_TIMEOUT_MS = 15_000;

/**
 * Idle timeout of a connection, in ms. The clients' timeout is shorter, so the clients close connections
 * first.
 */
const KEEP_ALIVE_MS = 65_000;

const CLOSE_GRACE_MS = 3_000;

/**
 * Starts the sandbox gateway, a payment gateway that moves no money. The gateway stores its data in the
 * schema `sandbox_gateway`. Rejects and leaves nothing open if the database or the port is not available.
 */
export async function createSandboxGateway(
  options: SandboxGatewayOptions,
): Promise<SandboxGateway> {
  const now = options.now ?? Date.now;
  const closing = new AbortController();
  const sql = await openBook(options.databaseUrl);
  const cards = createCardBook(sql);
  const charges = createChargeBook(sql);
  const faults = createFaults(closing.signal);

  const routes: Route[] = [
    { method: 'GET', path: '/health', access: 'public', handle: async () => json(200, {}) },
    tokeniserRoute({ cards, allowedReturnOrigins: options.allowedReturnOrigins, now }),
    ...paymentRoutes({ cards, charges, faults, now }),
    ...controlRoutes({ charges, faults }),
  ];
  const server = createServer(createListener(routes, options));
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;

  try {
    await cards.forgetOldTokens(now());
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    await sql.end({ timeout: 1 });
    throw error;
  }

  return {
    url: originOf(server.address() as AddressInfo),
    close: async () => {
      closing.abort();
      await stop(server);
      await sql.end({ timeout: 1 });
    },
  };
}

/** Returns the request listener, which finds the route, checks the key, and answers every error. */
function createListener(routes: readonly Route[], options: SandboxGatewayOptions) {
  const isKey = keyCheck(options.apiKey);

  const answer = async (request: IncomingMessage, url: URL): Promise<Reply> => {
    const atPath = routes.filter((route) => route.path === url.pathname);
    if (atPath.length === 0) throw new RequestRefused(404, 'route_not_found', 'No such route.');
    const route = atPath.find((each) => each.method === request.method);
    if (route === undefined) {
      throw new RequestRefused(405, 'method_not_allowed', 'No such method on this route.');
    }
    expectAccess(route.access, request, isKey);
    return route.handle({ request, url });
  };

  return (request: IncomingMessage, response: ServerResponse): void => {
    const target = request.url ?? '/';
    const url = URL.canParse(target, 'http://gateway') ? new URL(target, 'http://gateway') : null;
    const answered =
      url === null
        ? Promise.resolve(json(400, { error: 'url_unreadable' }))
        : answer(request, url).catch((error: unknown) => {
            if (error instanceof RequestRefused) return refusal(error);
            options.onFailure?.(error, `${request.method ?? ''} ${url.pathname}`);
            return json(500, { error: 'internal_error' });
          });
    void answered.then((result) => writeAnswer(response, result));
  };
}

function expectAccess(
  access: Access,
  request: IncomingMessage,
  isKey: (given: string) => boolean,
): void {
  if (access === 'public') return;
  if (access === 'key_on_loopback' && !isLoopback(request.socket.remoteAddress)) {
    throw new RequestRefused(403, 'loopback_only', 'This route is open on this machine only.');
  }
  const [scheme, given] = (request.headers.authorization ?? '').split(' ', 2);
  if (scheme?.toLowerCase() !== 'bearer' || given === undefined || !isKey(given)) {
    throw new RequestRefused(401, 'unauthorized', 'The gateway key is missing or wrong.');
  }
}

/** Returns a check that compares digests, so that its duration reveals nothing about the key. */
function keyCheck(expected: string): (given: string) => boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  const wanted = digest(expected);
  return (given) => timingSafeEqual(digest(given), wanted);
}

function isLoopback(address: string | undefined): boolean {
  const plain = (address ?? '').replace(/^::ffff:/, '');
  return plain === '::1' || /^127\.\d+\.\d+\.\d+$/.test(plain);
}

async function stop(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  await closed;
  clearTimeout(cut);
}

function originOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
