import type { IncomingHttpHeaders } from 'node:http';
import type { Sql } from 'postgres';
import type { GatewayAnswer } from '../../gateways/http-server/http.ts';
import { accountOf } from './accounts.ts';
import type { AnswerCheck } from './answer-check.ts';
import { bookOf, newId } from './book.ts';
import { chargeEndpoints } from './charge-endpoints.ts';
import { checkoutEndpoints } from './checkout-sessions.ts';
import { customerEndpoints } from './customer-endpoints.ts';
import { findEndpoint } from './endpoint.ts';
import type { FoundEndpoint } from './endpoint.ts';
import { notInDouble, StripeRefusal } from './errors.ts';
import { API_VERSION } from './events.ts';
import type { Emitted, Events } from './events.ts';
import { expand } from './expand.ts';
import { expectOnly, parseForm, texts } from './form.ts';
import type { Params } from './form.ts';
import type { Holds } from './holds.ts';
import { createIdempotency } from './idempotency.ts';
import type { Claim } from './idempotency.ts';
import { paymentIntentEndpoints } from './payment-intents.ts';
import type { RequestCheck } from './request-check.ts';
import type { Scope, StripeAnswer } from './scope.ts';

/** A proxy's header: answer 500, stored and replayed. `done`: the request is executed; `none`: it is not. */
export const STORED_500_HEADER = 'stripe-double-stored-500';

export const ENDPOINTS = [
  ...customerEndpoints,
  ...paymentIntentEndpoints,
  ...checkoutEndpoints,
  ...chargeEndpoints,
];

export interface ApiOptions {
  readonly sql: Sql;
  readonly events: Events;
  readonly holds: Holds;
  readonly nowMs: () => number;
  readonly publicUrl: () => string;
  readonly requestCheck: RequestCheck;
  readonly answerCheck: AnswerCheck;
  /** Called for every failure of the double itself: a defect, or an answer that Stripe would not give. */
  readonly onFailure: (error: unknown, route: string) => void;
}

export interface ApiRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Api = ReturnType<typeof createApi>;

/** Serves Stripe's API. Never rejects: a defect of the double is answered 500 and reported. */
export function createApi(options: ApiOptions) {
  const { sql, nowMs } = options;
  const idempotency = createIdempotency(sql, nowMs);

  const serve = async (request: ApiRequest): Promise<GatewayAnswer> => {
    const requestId = newId('req');
    try {
      return await answer(request, requestId);
    } catch (error) {
      const refused = error instanceof StripeRefusal ? error : lockTimeout(error);
      if (refused !== null) {
        return sent(requestId, refused.status, JSON.stringify({ error: refused.body }));
      }
      options.onFailure(error, `${request.method} ${request.url.pathname}`);
      return sent(requestId, 500, JSON.stringify(ERROR_500));
    }
  };

  const answer = async (request: ApiRequest, requestId: string): Promise<GatewayAnswer> => {
    const { method, url, headers, body } = request;
    const accountId = await accountOf(sql, headers);
    const refusal = await options.requestCheck({
      method,
      target: url.pathname + url.search,
      contentType: headers['content-type'],
      version: String(headers['stripe-version'] ?? API_VERSION),
      body,
    });
    if (refusal) return sent(requestId, refusal.status, JSON.stringify(refusal.body));
    const found = findEndpoint(ENDPOINTS, method, url.pathname);
    if (found === null) throw notInDouble(`${method} ${url.pathname}`);
    const params = parseForm(method === 'GET' ? url.search.slice(1) : body);
    const allowed = ['expand', ...found.endpoint.params];
    expectOnly(params, allowed, `${method} ${found.endpoint.path}`);
    if (found.endpoint.path.endsWith('/confirm')) await countConfirm(sql, found.id);

    const key = method === 'POST' ? headers['idempotency-key'] : undefined;
    const claim = typeof key === 'string' ? { accountId, key, requestId } : null;
    if (claim !== null) {
      const stored = await idempotency.claim(claim, `${method} ${url.pathname} ${body}`);
      if (stored !== null) {
        return sent(requestId, stored.status, stored.body, {
          'idempotency-key': claim.key,
          'idempotent-replayed': 'true',
          'original-request': stored.requestId,
        });
      }
    }
    try {
      await options.holds.pass(url.pathname);
      return await carryOut({ found, params, accountId, claim, requestId, headers });
    } catch (error) {
      if (claim !== null) await idempotency.release(claim);
      throw error;
    }
  };

  /** One transaction contains the effects, the events and the stored answer. */
  const carryOut = async (work: Work): Promise<GatewayAnswer> => {
    const { found, accountId, claim, requestId } = work;
    const now = Math.floor(nowMs() / 1_000);
    const { status, text, early } = await sql.begin(async (tx) => {
      const { answer, emitted } = await execute(tx, work, { now, publicUrl: options.publicUrl() });
      const problems = options.answerCheck(found.endpoint, answer.status, answer.body);
      // It differs from Stripe's OpenAPI document. The effects of the request are undone.
      if (problems.length > 0) {
        throw new Error(`Invalid answer:\n${problems.join('\n')}\n${JSON.stringify(answer)}`);
      }
      const text = JSON.stringify(answer.body);
      const cause = { now, requestId, idempotencyKey: claim?.key ?? null };
      const early = await options.events.store(bookOf(tx, accountId), emitted, cause);
      if (claim !== null) await idempotency.store(tx, claim, answer.status, text);
      return { status: answer.status, text, early };
    });
    await options.events.sendEarly(early);
    options.events.kick();
    return sent(requestId, status, text, claim === null ? {} : { 'idempotency-key': claim.key });
  };

  return { serve };
}

type Transaction = Parameters<Parameters<Sql['begin']>[1]>[0];

interface Work {
  readonly found: FoundEndpoint;
  readonly params: Params;
  readonly accountId: string;
  readonly claim: Claim | null;
  readonly requestId: string;
  readonly headers: IncomingHttpHeaders;
}

/** A refusal undoes the effects. A declined card is an answer, so its effects stay. */
async function execute(
  tx: Transaction,
  work: Work,
  { now, publicUrl }: { readonly now: number; readonly publicUrl: string },
) {
  const stored500 = work.headers[STORED_500_HEADER];
  if (stored500 === 'none') return { answer: { status: 500, body: ERROR_500 }, emitted: [] };
  const emitted: Emitted[] = [];
  try {
    const answer = await tx.savepoint(async (inner) => {
      const book = bookOf(inner, work.accountId);
      const scope: Scope = {
        book,
        now,
        publicUrl,
        emit: (type, object) => void emitted.push({ type, object }),
      };
      const { status, body } = await work.found.endpoint.handle(scope, {
        id: work.found.id,
        params: work.params,
      });
      if (status !== 200) return { status, body };
      return { status, body: await expand(book, body, texts(work.params, 'expand')) };
    });
    return { answer: stored500 === 'done' ? { status: 500, body: ERROR_500 } : answer, emitted };
  } catch (error) {
    if (!(error instanceof StripeRefusal)) throw error;
    const answer: StripeAnswer = { status: error.status, body: { error: error.body } };
    return { answer, emitted: [] };
  }
}

const ERROR_500 = { error: { type: 'api_error', message: 'An unknown error occurred' } } as const;

/** Another request locks the object, and this one has no effect. Null for any other error. */
function lockTimeout(error: unknown): StripeRefusal | null {
  if ((error as { code?: unknown } | null)?.code !== '55P03') return null;
  return new StripeRefusal(429, {
    type: 'invalid_request_error',
    code: 'lock_timeout',
    message:
      'This object cannot be accessed right now because another API request or Stripe process is currently accessing it.',
  });
}

async function countConfirm(sql: Sql, intentId: string): Promise<void> {
  await sql`
    insert into stripe_double.confirm_request (intent_id, count) values (${intentId}, 1)
    on conflict (intent_id) do update set count = confirm_request.count + 1`;
}

function sent(
  requestId: string,
  status: number,
  body: string,
  more: GatewayAnswer['headers'] = {},
): GatewayAnswer {
  const headers = { 'request-id': requestId, 'stripe-version': API_VERSION, ...more };
  return { status, headers: { 'content-type': 'application/json', ...headers }, body };
}
