import { LINKS } from './links.ts';
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { request } from 'undici';
import { test as base } from 'vitest';
import { createApp } from '../../api/http/frame.ts';
import { createApiServer } from '../../api/http/server.ts';
import { createFeedWaits } from '../../api/routes/events/waits.ts';
import { createDb } from '../../db/client.ts';
import { createMerchantWithCredential } from '../../db/repositories/merchants/merchants.ts';
import type { CreatedMerchant } from '../../db/repositories/merchants/merchants.ts';
import { gatewayRows } from '../../db/repositories/merchants/gateways.ts';
import { createMerchantGateways } from '../../gateways/merchant-gateways.ts';
import type { ForcedDeclines } from '../../gateways/port.ts';
import { oneGateway } from './one-gateway.ts';
import type { EventSenders, GatewayRegistry } from '../../gateways/registry.ts';
import { createSandboxClient } from '../../gateways/sandbox/client.ts';
import { createLogger } from '../../runtime/logger.ts';
import { checkUnanswered } from '../../runtime/request-scope.ts';
import { createSealing } from '../../runtime/sealing.ts';
import { endpointProblem } from '../../runtime/webhook-address.ts';
import { countRows, createTestDatabase } from './database.ts';
import { declarationRows } from '../../db/repositories/customers/declarations.ts';
import { submitCard } from '../../temporal/cards.ts';
import { declarationTaker } from '../../temporal/declarations.ts';
import { createFakeOrders } from './fakes/orders.ts';
import { defaultDocumentCheck } from './document-check.ts';
import { createFakeWorkflows } from './fakes/subscription-workflows.ts';
import { KEEP_ALIVE_MS, listen } from '../../tools/scripts/client/listen.ts';
import type { RateLimits } from '../../api/deps.ts';

export const PUBLIC_URL = LINKS.publicUrl;
export const TOKENISER_URL = 'https://cards.example/tokenise';
export const SESSION_KEY = LINKS.sessionKey;
/** Time in ms between two reads of a call that waits for events. */
const FEED_POLL_MS = 20;
const PEPPER = 'pepper-of-the-api-tests-0000000000000001';

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** The body as text. */
  text: string;
  /** The parsed body of a JSON answer; null for another content type. */
  json: unknown;
}

export interface CallOptions {
  body?: unknown;
  /** The raw request body, sent instead of `body`. */
  raw?: string | Buffer;
  headers?: Record<string, string>;
  /** The value of the header Idempotency-Key. */
  key?: string;
  /** The caller's credentials. Null sends none. Default: the first merchant. */
  as?: { keyId: string; secret: string } | null;
}

export interface ApiOptions {
  /** Default: limits that no test reaches. */
  rateLimits?: RateLimits;
  /**
   * Time limits in ms of a request without an outcome. After `lateAfter` an order without an idempotency key is
   * voided, and `grace` ms later the answer is 503. Default: the production limits.
   */
  deadlineMs?: readonly [lateAfter: number, grace: number];
  /** Longest wait in ms for the subscriptions of a test clock that advances. Default: the production limit, 25 s. */
  clockWaitMs?: number;
  /** The mode of both merchants. Live merchants have the sandbox's card form. Default: test. */
  mode?: 'test' | 'live';
  /** The number of trusted proxies. With 1, the default, a test sets a payer's address by `X-Forwarded-For`. */
  trustedProxies?: number;
  /** Values of CREDENTIAL_PEPPER. The first one hashes the secrets of both merchants. */
  peppers?: readonly string[];
  /**
   * Default in test mode: the production registry, whose sandbox and Stripe have addresses that accept no
   * connections. Default in live mode: that sandbox alone.
   */
  gateways?: GatewayRegistry & EventSenders;
}

const NO_LIMITS: RateLimits = {
  windowSeconds: 1,
  requests: 1_000_000,
  readsOfOneSubscription: 1_000_000,
};

const documentCheck = defaultDocumentCheck();

export type ApiEnvironment = Awaited<ReturnType<typeof createApiEnvironment>>;

/**
 * The `test` function of a file with one API environment. Faults and clock are restored after each test. A
 * file sets its options by `apiTest.extend('apiOptions', { scope: 'file' }, {…})`. Vitest's `override` would
 * set them for every later file of the process, because files share their modules.
 */
export const test = base
  .extend('apiOptions', { scope: 'file' }, {} as ApiOptions)
  /** Creates a further environment, which is closed after the tests of the file. */
  .extend('createApi', { scope: 'file' }, ({ apiOptions }, { onCleanup }) => {
    const created: ApiEnvironment[] = [];
    onCleanup(async () => {
      for (const api of created) await api.close();
    });
    return async (options = apiOptions): Promise<ApiEnvironment> => {
      const api = await createApiEnvironment(options);
      created.push(api);
      return api;
    };
  })
  .extend('api', { scope: 'file' }, ({ createApi }) => createApi())
  .extend('restored', { auto: true }, ({ api }, { onCleanup }) => onCleanup(() => api.restore()));

/**
 * Starts the API on a TCP port, with its own Postgres database and two merchants. No Temporal server and no gateway
 * runs: fakes replace the workflows. All other code is the production code.
 */
export async function createApiEnvironment({
  rateLimits = NO_LIMITS,
  mode = 'test',
  trustedProxies = 1,
  deadlineMs,
  clockWaitMs,
  gateways,
  peppers = [PEPPER],
}: ApiOptions = {}) {
  const [pepper = PEPPER] = peppers;
  const database = await createTestDatabase();
  const handle = createDb({
    url: database.url,
    poolSize: 10,
    applicationName: 'test-api',
    beforeEach: checkUnanswered,
  });
  const { db } = handle;
  const clock = { aheadMs: 0 };
  const now = (): number => Date.now() + clock.aheadMs;
  const workflows = createFakeWorkflows(db, now);
  const orders = createFakeOrders(db, now);
  const initial = [clock, workflows.faults, orders.faults].map((it) => [it, { ...it }] as const);
  const forcedDeclines: ForcedDeclines[] = [];
  const logLines: Record<string, unknown>[] = [];
  const logger = createLogger(
    { name: 'api-test' },
    { write: (line: string) => void logLines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const sealing = createSealing([randomBytes(32)]);
  const testCards = [{ number: '4242424242424242', label: 'pays' }];
  const client = createSandboxClient({
    url: 'http://127.0.0.1:1',
    publicUrl: new URL(TOKENISER_URL).origin,
    apiKey: '',
  });
  const sandbox = { ...client, testCards };
  const feedWaits = createFeedWaits(FEED_POLL_MS);
  const app = createApp({
    db,
    feedWaits,
    workflows,
    starts: { begin: async (ref) => void (await workflows.start(ref)) },
    webhooks: workflows.webhooks,
    gatewaySubjects: { wake: async () => undefined },
    orders,
    submitCard: (page, paymentToken) => submitCard({ workflows, orders }, page, paymentToken),
    takeDeclaration: declarationTaker({
      rows: declarationRows(db),
      workflows,
      wakeStream: (stream) => workflows.webhooks.wakeStream(stream),
      logger,
    }),
    logger,
    now,
    random: randomBytes,
    publicUrl: PUBLIC_URL,
    homeLinks: [{ url: 'https://temporal.example/ui?a=1&b=2', text: 'Temporal Web UI' }],
    checkoutExpiryMs: 24 * 3_600_000,
    rateLimits,
    trustedProxies,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    ...(clockWaitMs === undefined ? {} : { clockWaitMs }),
    sessionKey: SESSION_KEY,
    credentialPeppers: peppers,
    gateways:
      gateways ??
      (mode === 'live'
        ? oneGateway(sandbox)
        : createMerchantGateways({
            sandbox,
            ...gatewayRows(db),
            sealing,
            timeoutMs: 5_000,
            doubleUrls: { stripe: 'http://127.0.0.1:1' },
          })),
    testCards,
    declineNext: async (order) => void forcedDeclines.push(order),
    sealing,
    endpointProblem: (endpoint) =>
      endpointProblem(endpoint, { allowLoopback: false, sendsMails: true }),
  });
  const server = createApiServer(
    app,
    { logger, now, random: randomBytes },
    { keepAliveTimeout: KEEP_ALIVE_MS },
  );
  const { url, close } = await listen(server);

  const merchant = await createMerchantWithCredential(db, {
    name: 'Acme Ltd',
    mode,
    pepper,
  });
  const other = await createMerchantWithCredential(db, {
    name: 'Other Ltd',
    mode,
    pepper,
  });

  return {
    url,
    db,
    workflows,
    orders,
    feedWaits,
    poolUse: handle.poolUse,
    /**
     * The requests of the API to the sandbox gateway to decline the next charges. No gateway receives them.
     */
    forcedDeclines,
    logLines,
    merchant,
    other,
    sealing,
    pepper,
    databaseUrl: database.url,
    /** `aheadMs` sets how far the API's real time is ahead of the machine's time. */
    clock,
    /** Sends a request. Throws when the answer differs from the OpenAPI document. */
    call: async (method: string, path: string, options: CallOptions = {}): Promise<Answer> => {
      const answer = await send(url + path, method, merchant, options);
      const problems = documentCheck.problemsOfCall(method, path, options.body, answer);
      if (problems.length === 0) return answer;
      throw new Error(`${method} ${path} is not as documented:\n${problems.join('\n')}`);
    },
    /** The number of rows of every table. */
    countRows: () => countRows(db),
    withoutDatabase: <T>(work: () => Promise<T>) => withoutDatabase(database.url, work),
    /** Ends every fault and sets the clock to the machine's time. */
    restore(): void {
      for (const [state, values] of initial) Object.assign(state, values);
    },
    async close(): Promise<void> {
      await close();
      await handle.close(500);
      await database.drop();
    },
  };
}

function basic({ keyId, secret }: { keyId: string; secret: string }): string {
  return `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`;
}

async function send(
  url: string,
  method: string,
  merchant: CreatedMerchant,
  options: CallOptions,
): Promise<Answer> {
  const credentials = options.as === undefined ? merchant : options.as;
  const body = options.raw ?? (options.body === undefined ? null : JSON.stringify(options.body));
  const response = await request(url, {
    method: method as 'GET',
    headers: {
      ...(credentials === null ? {} : { authorization: basic(credentials) }),
      ...(body === null ? {} : { 'content-type': 'application/json' }),
      ...(options.key === undefined ? {} : { 'idempotency-key': options.key }),
      ...options.headers,
    },
    body,
  });
  const text = await response.body.text();
  const isJson = String(response.headers['content-type']).includes('json');
  return {
    status: response.statusCode,
    headers: response.headers,
    text,
    json: isJson ? (JSON.parse(text) as unknown) : null,
  };
}

/** Closes every connection to the database and allows no new one while `work` runs. */
async function withoutDatabase<T>(url: string, work: () => Promise<T>): Promise<T> {
  const server = new URL(url);
  const name = server.pathname.slice(1);
  server.pathname = '/postgres';
  const admin = postgres(server.href, { max: 1 });
  const allow = (is: boolean) => admin.unsafe(`alter database ${name} allow_connections ${is}`);
  try {
    await allow(false);
    await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
    return await work();
  } finally {
    await allow(true);
    await admin.end({ timeout: 5 });
  }
}

/** The body of a valid request to create a subscription, with these changes. */
export function subscriptionBody(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    amount: 1_999,
    currency: 'USD',
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    callbackUrl: 'https://merchant.example/back?order=7',
    interval: 'MONTH',
    intervalCount: 1,
    cycleCount: 12,
    ...changes,
  };
}
