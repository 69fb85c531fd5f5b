import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Stripe } from 'stripe';
import { test, vi } from 'vitest';
import { askControl } from '../../cli/verify/gateway-control.ts';
import type { ControlMethod } from '../../cli/verify/gateway-control.ts';
import { startStripeMock, stripeMockFiles } from '../../tools/embedded/stripe-mock.ts';
import type { CardEntryRequest, ChargeRequest } from '../../gateways/port.ts';
import { createFaultProxy } from '../../tools/fault-proxy/proxy.ts';
import { createStripeGateway } from '../../gateways/stripe/adapter.ts';
import { createStripeClient } from '../../gateways/stripe/client.ts';
import { createStripeDouble } from '../../tools/stripe-double/server.ts';
import type { StripeDoubleOptions } from '../../tools/stripe-double/server.ts';
import { loadEmbeddedConfig } from '../../tools/config.ts';
import { createTestDatabase } from './database.ts';
import { KEEP_ALIVE_MS, listen } from '../../tools/scripts/client/listen.ts';

const CONTROL_KEY = 'control-key-of-the-contract-tests-01';
export const WEBHOOK_SECRET = 'whsec_contract_tests';
const RETURN_URL = 'http://127.0.0.1:8080/return?payment_token={CHECKOUT_SESSION_ID}';

const say = (line: string): void => void process.stderr.write(`${line}\n`);

export type StripeWorld = Awaited<ReturnType<typeof startStripe>>;

/**
 * Starts stripe-mock, the Stripe double, a fault proxy before the double, and a webhook receiver. `stripe` is
 * a real Stripe client that calls the proxy. `failures` collects the failures of the double itself. `close`
 * rejects if there is a failure.
 */
export async function startStripe(options: Partial<StripeDoubleOptions> = {}) {
  const files = await stripeMockFiles(loadEmbeddedConfig().cacheDir, say);
  const [database, mock, receiver] = await Promise.all([
    createTestDatabase(),
    startStripeMock(files.program),
    startReceiver(),
  ]);
  const failures: string[] = [];
  const doubleOptions: StripeDoubleOptions = {
    databaseUrl: database.url,
    controlKey: CONTROL_KEY,
    check: { stripeMockUrl: mock.url, specFile: files.specFile },
    onFailure: (error, route) => {
      failures.push(`${route}: ${String(error)}`);
      say(`the Stripe double failed: ${failures.at(-1)}`);
    },
    ...options,
  };
  const double = await createStripeDouble(doubleOptions);
  const proxy = await createFaultProxy({ targetUrl: double.url, controlKey: CONTROL_KEY });

  const call = (origin: string) => async (method: ControlMethod, path: string, body?: object) => {
    const answer = await askControl(`${origin}/control/${path}`, CONTROL_KEY, method, body);
    return answer as Record<string, unknown>;
  };
  const control = call(double.url);

  let keys = 0;
  /** Creates an account with its own key, and a client of this account. */
  const account = async (more: { webhookUrl?: string } = {}) => {
    const secretKey = `sk_test_contract_${(keys += 1)}`;
    const { accountId } = await control('POST', 'accounts', {
      secretKey,
      ...(more.webhookUrl === undefined ? {} : { webhookSecret: WEBHOOK_SECRET }),
      ...more,
    });
    return { id: String(accountId), secretKey, stripe: client(secretKey) };
  };

  const client = (secretKey: string, timeoutMs = 20_000) =>
    createStripeClient({ secretKey, timeoutMs, url: proxy.url });

  const own = await account({ webhookUrl: receiver.url });
  return {
    ...own,
    files,
    mock,
    double,
    proxy,
    receiver,
    failures,
    account,
    client,
    control,
    doubleOptions,
    faults: call(proxy.url),
    close: async (): Promise<void> => {
      await proxy.close();
      await double.close();
      await Promise.all([mock.stop(), receiver.close()]);
      await database.drop();
      // If the double prepares an answer that Stripe would not give, it answers 500 and records a failure. A
      // test may overlook the 500.
      if (failures.length > 0) throw new Error(failures.join('\n'));
    },
  };
}

/** The `test` function of the Stripe tests. The tests of a file share one `world`. */
export const onStripe = test
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('world', { scope: 'file' }, async ({}, { onCleanup }) => {
    const world = await startStripe();
    onCleanup(() => world.close());
    return world;
  });

export interface ReceivedEvent {
  readonly rawBody: string;
  readonly signature: string;
  readonly id: string;
  readonly type: string;
  /** The id of the object in the event. */
  readonly objectId: string;
}

/** Starts a webhook endpoint that records every request. */
async function startReceiver() {
  const received: ReceivedEvent[] = [];
  let refusedText: string | null = null;
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void (async () => {
      const rawBody = await text(request);
      const event = JSON.parse(rawBody) as {
        id: string;
        type: string;
        data: { object: { id: string } };
      };
      const isRefused = refusedText !== null && rawBody.includes(refusedText);
      if (isRefused) refusedText = null;
      received.push({
        rawBody,
        signature: String(request.headers['stripe-signature']),
        id: event.id,
        type: event.type,
        objectId: event.data.object.id,
      });
      response.writeHead(isRefused ? 500 : 200).end();
    })();
  });
  const { url, close } = await listen(server);
  const of = (objectId: string) => received.filter((event) => event.objectId === objectId);
  return {
    url: `${url}/events`,
    received,
    /** Answers 500 to the next event that contains `text`. Every other answer has status 200. */
    refuseNext: (text: string) => void (refusedText = text),
    /** The events about an object in the order of arrival. */
    of,
    /** Waits until there are at least `count` events about an object, and returns their types. */
    waitFor: async (objectId: string, count: number): Promise<string[]> => {
      await vi.waitUntil(() => of(objectId).length >= count, { timeout: 60_000, interval: 20 });
      return of(objectId).map(({ type }) => type);
    },
    close,
  };
}

export type CardForm = Partial<Record<'number' | 'expiry' | 'cvc' | 'name', string>>;

/** Submits a form of a hosted page as a browser does, without following redirects. */
export async function submitForm(url: string, fields: Readonly<Record<string, string>>) {
  const response = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams(fields),
  });
  return {
    status: response.status,
    location: response.headers.get('location'),
    html: await response.text(),
  };
}

export function submitCard(url: string, number: string, changes: CardForm = {}) {
  const card = { number, expiry: '12 / 34', cvc: '123', name: 'Ada Example', ...changes };
  return submitForm(url, card);
}

/** Submits a card on Stripe's page, and confirms the card if its bank asks for it. */
export async function submitConfirmedCard(url: string, number: string) {
  const step = await submitCard(url, number);
  const isAsked = step.location?.includes('/challenge/') === true;
  return isAsked ? submitForm(String(step.location), { outcome: 'complete' }) : step;
}

/** Opens a Checkout Session in mode `setup` for a new customer. */
export async function setupSession(stripe: Stripe) {
  const customer = await stripe.customers.create({ email: 'ada@example.com' });
  return stripe.checkout.sessions.create({
    mode: 'setup',
    customer: customer.id,
    payment_method_types: ['card'],
    success_url: RETURN_URL,
    cancel_url: 'http://127.0.0.1:8080/back',
  });
}

/** A request to open Stripe's card page for a customer without a saved method. `changes` replaces fields. */
export function cardEntry(changes: Partial<CardEntryRequest> = {}): CardEntryRequest {
  return {
    session: `cs_${randomUUID()}`,
    tries: 0,
    customer: {
      id: 'cus_ours',
      name: 'Ada Example',
      email: 'ada@example.com',
      gatewayMethodId: null,
    },
    returnUrl: 'http://127.0.0.1:8080/return?state=abc',
    cancelUrl: 'http://127.0.0.1:8080/back',
    expiresAt: Date.now() + 86_400_000,
    text: 'Acme Ltd · Tea · Today: US$19.99',
    locale: 'de',
    ...changes,
  };
}

/** Saves a new customer's card on the double's hosted page. Returns the ids of customer and payment method. */
export async function savedCard(stripe: Stripe, number = '4242424242424242') {
  const session = await setupSession(stripe);
  await submitConfirmedCard(String(session.url), number);
  const { setup_intent: intent } = await stripe.checkout.sessions.retrieve(session.id, {
    expand: ['setup_intent'],
  });
  if (intent === null || typeof intent === 'string') throw new Error('the SetupIntent is absent');
  return {
    customer: intent.customer as string,
    payment_method: intent.payment_method as string,
  };
}

/** Creates an unconfirmed PaymentIntent of 19.99 USD with a saved card. */
export function prepare(
  stripe: Stripe,
  saved: { customer: string; payment_method: string },
  changes: Partial<Stripe.PaymentIntentCreateParams> = {},
  options: Stripe.RequestOptions = {},
) {
  return stripe.paymentIntents.create(
    { amount: 1_999, currency: 'usd', payment_method_types: ['card'], ...saved, ...changes },
    options,
  );
}

/** The fields of a refused request's error. */
export async function refusalOf(request: Promise<unknown>) {
  const error: unknown = await request.then(
    () => new Error('the request was not refused'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Stripe.errors.StripeError)) throw error;
  const { statusCode, rawType, code, decline_code, advice_code, param, message } =
    error as Stripe.errors.StripeError & { advice_code?: string };
  return { statusCode, rawType, code, decline_code, advice_code, param, message, error };
}

/** Stripe's adapter for the account of `world`. `changes` replaces its options. */
export function gatewayOf(
  { secretKey, id, proxy }: StripeWorld,
  changes: Partial<Parameters<typeof createStripeGateway>[0]> = {},
) {
  return createStripeGateway({
    secretKey,
    accountId: id,
    webhookSecrets: [WEBHOOK_SECRET],
    timeoutMs: 20_000,
    url: proxy.url,
    ...changes,
  });
}

/** Saves a card. Returns a request to charge it with 19.99 USD. `changes` replaces fields. */
export async function chargeRequest(
  { stripe }: StripeWorld,
  { number, ...changes }: Partial<ChargeRequest> & { readonly number?: string } = {},
): Promise<ChargeRequest> {
  const { customer, payment_method } = await savedCard(stripe, number);
  return {
    key: `charge:in_${customer}:1`,
    gatewayChargeId: null,
    gatewayMethodId: `${customer}/${payment_method}`,
    amountMinor: 1_999,
    currency: 'USD',
    reference: {
      merchantId: 'mer_1',
      intentId: 'in_1',
      subscriptionId: 'sub_1',
      cycleNumber: 2,
      paymentMethodId: 'pmt_1',
    },
    ...changes,
  };
}

/** As {@link chargeRequest}, with a PaymentIntent that waits for its confirmation. */
export async function preparedCharge(world: StripeWorld, number?: string) {
  const request = await chargeRequest(world, number === undefined ? {} : { number });
  const made = await gatewayOf(world).prepare?.(request);
  if (made?.kind !== 'prepared') throw new Error(`not prepared: ${made?.kind}`);
  return { ...request, gatewayChargeId: made.gatewayChargeId };
}

/** Makes Stripe refuse the next matching request with `error`, without any effect. */
export async function refuseNext(
  world: StripeWorld,
  request: { readonly method: string; readonly path: string },
  error: { type?: string; code?: string; param?: string; message?: string },
  status = 400,
) {
  const body = { error: { type: 'invalid_request_error', message: 'ordered', ...error } };
  await world.faults('DELETE', 'faults');
  await world.faults('POST', 'faults', { ...request, count: 1, fault: 'answer', status, body });
}
