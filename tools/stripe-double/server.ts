import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  json,
  readText,
  refusal,
  RequestRefused,
  writeAnswer,
} from '../../gateways/http-server/http.ts';
import type { Reply, Route } from '../../gateways/http-server/http.ts';
import { listen, stop } from '../../gateways/http-server/listening.ts';
import type { ListenOptions } from '../../gateways/http-server/listening.ts';
import { expectControlKey } from '../fault-proxy/control-key.ts';
import { createAnswerCheck } from './answer-check.ts';
import { createApi, ENDPOINTS } from './api.ts';
import type { Api } from './api.ts';
import { bookOf } from './book.ts';
import { openBook } from './book-schema.ts';
import { answerChallenge, showChallenge, showCheckout, submitCard } from './checkout-pages.ts';
import type { PageAnswer } from './checkout-pages.ts';
import { currentSession } from './checkout-sessions.ts';
import { controlRoutes } from './control-routes.ts';
import { StripeRefusal } from './errors.ts';
import { createEvents } from './events.ts';
import type { Emitted } from './events.ts';
import { createHolds } from './holds.ts';
import { createRequestCheck } from './request-check.ts';
import type { Scope } from './scope.ts';

export interface StripeDoubleOptions extends ListenOptions {
  readonly databaseUrl: string;
  readonly controlKey: string;
  /** stripe-mock checks every request, Stripe's OpenAPI document every answer. */
  readonly check: { readonly stripeMockUrl: string; readonly specFile: string };
  /** The origin of the hosted pages. Default: the origin of the double. */
  readonly publicUrl?: string;
  readonly now?: () => number;
  /** Called for every failure of the double itself. Default: writes the failure to stderr. */
  readonly onFailure?: (error: unknown, route: string) => void;
}

export interface StripeDouble {
  readonly url: string;
  /** Refuses new requests, waits at most 3 s for running ones, and disconnects from the database. */
  close(): Promise<void>;
}

const BODY_LIMIT_BYTES = 65_536;
const EXPIRY_POLL_MS = 1_000;

/** Moves no money. gateways/README.md lists its endpoints. A restart loses no data. Rejects with nothing open. */
export async function createStripeDouble(options: StripeDoubleOptions): Promise<StripeDouble> {
  const { check } = options;
  const nowMs = options.now ?? Date.now;
  const onFailure = options.onFailure ?? reportOnStderr;
  const answerCheck = await createAnswerCheck(check.specFile, ENDPOINTS);
  const sql = await openBook(options.databaseUrl);
  const events = createEvents(sql, nowMs);
  const holds = createHolds();
  let url = '';
  const publicUrl = (): string => options.publicUrl ?? url;

  const onObject = async <T>(id: string, work: (scope: Scope) => Promise<T>): Promise<T> => {
    const now = Math.floor(nowMs() / 1_000);
    const { result, early } = await sql.begin(async (tx) => {
      const [row] = await tx<{ account_id: string }[]>`
        select account_id from stripe_double.object where id = ${id}`;
      if (row === undefined) throw new RequestRefused(404, 'not_found', `There is no ${id}.`);
      const emitted: Emitted[] = [];
      const book = bookOf(tx, row.account_id);
      const emit: Scope['emit'] = (type, object) => void emitted.push({ type, object });
      const done = await work({ book, now, publicUrl: publicUrl(), emit });
      const cause = { now, requestId: null, idempotencyKey: null };
      return { result: done, early: await events.store(book, emitted, cause) };
    });
    await events.sendEarly(early);
    events.kick();
    return result;
  };

  const expireSessions = async (): Promise<void> => {
    const over = await sql<{ id: string }[]>`
      select id from stripe_double.object
      where kind = 'checkout.session' and body->>'status' = 'open'
        and (body->>'expires_at')::bigint <= ${Math.floor(nowMs() / 1_000)} limit 100`;
    for (const { id } of over) await onObject(id, (scope) => currentSession(scope, id));
  };
  const timer = setInterval(() => void expireSessions().catch(() => undefined), EXPIRY_POLL_MS);
  timer.unref();

  const api = createApi({
    sql,
    events,
    holds,
    nowMs,
    publicUrl,
    requestCheck: createRequestCheck(check.stripeMockUrl),
    answerCheck,
    onFailure,
  });
  const control = controlRoutes({ sql, events, holds, nowMs, onObject });
  const listener = createListener({ api, control, onObject, options, onFailure });
  const server = createServer(listener);

  const close = async (): Promise<void> => {
    clearInterval(timer);
    holds.release();
    if (server.listening) await stop(server);
    await events.close();
    await sql.end({ timeout: 1 });
  };
  try {
    url = await listen(server, options);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, close };
}

interface ListenerOptions {
  readonly api: Api;
  readonly control: readonly Route[];
  readonly onObject: <T>(id: string, work: (scope: Scope) => Promise<T>) => Promise<T>;
  readonly options: StripeDoubleOptions;
  readonly onFailure: (error: unknown, route: string) => void;
}

function createListener({ api, control, onObject, options, onFailure }: ListenerOptions) {
  const answer = async (request: IncomingMessage, url: URL): Promise<Reply> => {
    const method = request.method ?? 'GET';
    if (url.pathname === '/health') return json(200, {});
    if (url.pathname.startsWith('/v1/')) {
      const body = await readText(request, BODY_LIMIT_BYTES);
      return api.serve({ method, url, headers: request.headers, body });
    }
    if (url.pathname.startsWith('/control/')) {
      const route = control.find((each) => each.path === url.pathname && each.method === method);
      if (route === undefined) throw new RequestRefused(404, 'route_not_found', 'No such route.');
      expectControlKey(request, options.controlKey);
      return route.handle({ request, url });
    }
    const [, page = '', id = ''] = url.pathname.split('/');
    const form =
      method === 'POST' ? new URLSearchParams(await readText(request, BODY_LIMIT_BYTES)) : null;
    return pageReply(await onObject(id, (scope) => servePage(scope, page, id, form)));
  };

  return (request: IncomingMessage, response: ServerResponse): void => {
    const url = new URL(request.url ?? '/', 'http://double');
    void answer(request, url)
      .catch((error: unknown) => {
        if (error instanceof RequestRefused) return refusal(error);
        if (error instanceof StripeRefusal) {
          return json(error.status, { error: 'refused', message: error.message });
        }
        onFailure(error, `${request.method ?? ''} ${url.pathname}`);
        return json(500, { error: 'internal_error' });
      })
      .then((reply) => writeAnswer(response, reply));
  };
}

/** `form`: what a payer has sent, or null. */
function servePage(scope: Scope, page: string, id: string, form: URLSearchParams | null) {
  if (page === 'checkout') {
    return form === null ? showCheckout(scope, id) : submitCard(scope, id, form);
  }
  if (page !== 'challenge') throw new RequestRefused(404, 'route_not_found', 'No such page.');
  if (form === null) return showChallenge(scope, id);
  return answerChallenge(scope, id, form.get('outcome') === 'complete');
}

function pageReply(answer: PageAnswer): Reply {
  if ('redirect' in answer)
    return { status: 303, headers: { location: answer.redirect }, body: '' };
  return {
    status: 200,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      // No `form-action`: the form leads to this page, which redirects to a merchant's site.
      'content-security-policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    },
    body: answer.html,
  };
}

function reportOnStderr(error: unknown, route: string): void {
  const shown = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(`STRIPE DOUBLE: ${route} failed\n${shown}\n`);
}
