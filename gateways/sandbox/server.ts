import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { openBook } from './book-schema.ts';
import type { BookSql } from './book-schema.ts';
import { createCardBook } from './card-book.ts';
import { createChargeBook } from './charge-book.ts';
import type { ChargeBook } from './charge-book.ts';
import { controlRoutes } from './control-routes.ts';
import {
  expectKey,
  expectLoopback,
  json,
  refusal,
  RequestRefused,
  writeAnswer,
} from '../http-server/http.ts';
import type { Access, Reply, Route } from '../http-server/http.ts';
import { listen, stop } from '../http-server/listening.ts';
import type { ListenOptions } from '../http-server/listening.ts';
import { paymentRoutes } from './payment-routes.ts';
import type { Serve } from './payment-routes.ts';
import { createRefundBook } from './refund-book.ts';
import { tokeniserRoute } from './tokeniser.ts';

export interface SandboxGatewayOptions extends ListenOptions {
  readonly databaseUrl: string;
  /** Bearer token of every route except the tokeniser and the health check. */
  readonly apiKey: string;
  /** The origins to which the tokeniser may redirect a browser. Read at every request. */
  readonly allowedReturnOrigins: readonly string[];
  /** Clock for stored times and the expiry of tokens and cards, in epoch ms. Default: real time. */
  readonly now?: () => number;
  /** Called for every error that is answered 500. The error's message may contain values of the request. */
  readonly onFailure?: (error: unknown, route: string) => void;
  /** Further routes, and the function that serves the requests for payments. Only for tools. */
  readonly extend?: (book: { sql: BookSql; charges: ChargeBook }) => {
    routes: Route[];
    serve: Serve;
  };
}

export interface SandboxGateway {
  readonly url: string;
  /** Refuses new requests, waits at most 3 s for running ones, and disconnects from the database. */
  close(): Promise<void>;
}

/** A payment gateway that moves no money. Rejects with nothing open if the database or the port is not available. */
export async function createSandboxGateway(
  options: SandboxGatewayOptions,
): Promise<SandboxGateway> {
  const now = options.now ?? Date.now;
  const sql = await openBook(options.databaseUrl);
  const cards = createCardBook(sql);
  const charges = createChargeBook(sql);
  const refunds = createRefundBook(sql);
  const extension = options.extend?.({ sql, charges });
  const serve: Serve = extension?.serve ?? ((_request, work) => work());

  const routes: Route[] = [
    { method: 'GET', path: '/health', access: 'public', handle: async () => json(200, {}) },
    tokeniserRoute({ cards, allowedReturnOrigins: options.allowedReturnOrigins, now }),
    ...paymentRoutes({ cards, charges, refunds, serve, now }),
    ...controlRoutes(charges),
    ...(extension?.routes ?? []),
  ];
  const server = createServer(createListener(routes, options));
  let url: string;
  try {
    await cards.forgetOldTokens(now());
    url = await listen(server, options);
  } catch (error) {
    await sql.end({ timeout: 1 });
    throw error;
  }

  return {
    url,
    close: async () => {
      await stop(server);
      await sql.end({ timeout: 1 });
    },
  };
}

/** Returns the request listener, which finds the route, checks the key, and answers every error. */
function createListener(routes: readonly Route[], options: SandboxGatewayOptions) {
  const answer = async (request: IncomingMessage, url: URL): Promise<Reply> => {
    const atPath = routes.filter((route) => route.path === url.pathname);
    if (atPath.length === 0) throw new RequestRefused(404, 'route_not_found', 'No such route.');
    const route = atPath.find((each) => each.method === request.method);
    if (route === undefined) {
      throw new RequestRefused(405, 'method_not_allowed', 'No such method on this route.');
    }
    expectAccess(route.access, request, options.apiKey);
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

function expectAccess(access: Access, request: IncomingMessage, key: string): void {
  if (access === 'public') return;
  if (access === 'key_on_loopback') expectLoopback(request);
  expectKey(request, key, 'gateway key');
}
