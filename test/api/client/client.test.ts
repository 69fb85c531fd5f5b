import { expect, onTestFinished } from 'vitest';
import { createClient, PerennialError } from '../../../client/index.ts';
import type { ClientSettings, Repeat } from '../../../client/index.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { openAnsweringProxy } from '../../support/answering-proxy.ts';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { emit } from '../../support/fixtures/feed.ts';

const ADA = { name: 'Ada Example', email: 'ada@example.com' };
const SIMULATED = {
  amount: 1_999,
  currency: 'USD',
  interval: 'MONTH',
  intervalCount: 1,
  cycleCount: 12,
  customerDetails: ADA,
  callbackUrl: 'https://merchant.example/back',
} as const;

const error = (errorCode: string) => JSON.stringify({ errorCode, errorDescription: 'No.' });

/** A client of a new merchant, behind a proxy that loses or replaces answers. */
async function open(api: ApiEnvironment, settings: Partial<ClientSettings> = {}) {
  const { db, pepper } = api;
  const merchant = await createMerchantWithCredential(db, { name: 'Shop', mode: 'test', pepper });
  const { merchantId, keyId, secret } = merchant;
  const proxy = await openAnsweringProxy(api.url);
  onTestFinished(() => proxy.close());
  const repeats: Repeat[] = [];
  const onRepeat = (repeat: Repeat): void => void repeats.push(repeat);
  const client = createClient({
    apiUrl: proxy.url,
    keyId,
    secret,
    onRepeat,
    patienceMs: 10_000,
    ...settings,
  });
  const emitOne = () => db.transaction((tx) => emit(tx, { merchantId, streamId: 'sub_a' }));
  return { client, proxy, repeats, emitOne };
}

const names = async (customers: AsyncIterable<{ customerDetails: { name?: string | null } }>) => {
  const found: unknown[] = [];
  for await (const { customerDetails } of customers) found.push(customerDetails.name);
  return found;
};

const thrownBy = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  );

test('a call whose answers are lost is repeated with its key, and executed once [D-§7]', async ({
  api,
}) => {
  const { client, proxy, repeats } = await open(api);
  proxy.reactNext('drop', 'drop');
  const { customerId } = await client.createCustomer({ body: { customerDetails: ADA } });
  expect(customerId).toMatch(/^cus_/);
  const [first] = proxy.requests;
  expect(first).toEqual({
    call: 'POST /customer/create',
    key: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
  });
  expect(proxy.requests).toEqual([first, first, first]);
  const repeat = { path: '/customer/create', reason: 'no answer (UND_ERR_SOCKET)' };
  expect(repeats).toMatchObject([repeat, repeat]);
  expect(await names(client.each('listCustomers'))).toEqual(['Ada Example']);
});

test('two calls have two keys, and a key that the caller gives is sent as it is [D-§7]', async ({
  api,
}) => {
  const { client, proxy } = await open(api);
  const body = { customerDetails: ADA };
  await client.createCustomer({ body });
  await client.createCustomer({ body });
  await client.createCustomer({ body }, { idempotencyKey: 'order-7' });
  const keys = proxy.requests.map(({ key }) => key);
  expect(new Set(keys).size).toBe(3);
  expect(keys[2]).toBe('order-7');
});

test('a read whose answer is lost is repeated, and a call that takes no key is not [D-§7]', async ({
  api,
}) => {
  const { client, proxy } = await open(api);
  proxy.reactNext('drop', 'pass', 'drop');
  expect(await client.listWebhooks()).toEqual({ data: [] });
  const thrown = await thrownBy(client.simulateSubscription({ body: SIMULATED }));
  expect(thrown).toBeInstanceOf(PerennialError);
  expect(thrown).toMatchObject({
    message: 'POST /subscription/simulate: no answer (UND_ERR_SOCKET)',
    status: null,
    errorCode: null,
    idempotencyKey: null,
  });
  const sent = ['GET /webhook', 'GET /webhook', 'POST /subscription/simulate'];
  expect(proxy.requests.map(({ call }) => call)).toEqual(sent);
});

test('a call waits as long as Retry-After of a full rate limit says [D-§8]', async ({
  createApi,
}) => {
  const limits = { windowSeconds: 2, requests: 1, readsOfOneSubscription: 1 };
  const { client, proxy, repeats } = await open(await createApi({ rateLimits: limits }));
  await client.listWebhooks();
  await client.listWebhooks();
  const reason = '429 rate_limit_exceeded: Too many requests. Wait before trying again.';
  expect(repeats[0]).toEqual({ path: '/webhook', reason, waitMs: 2_000 });
  expect(proxy.requests).toHaveLength(2 + repeats.length);
});

test('a Retry-After beyond the patience ends a call at once [D-§8]', async ({ api }) => {
  const { client, proxy, repeats } = await open(api);
  const headers = { 'retry-after': '120' };
  proxy.reactNext({ status: 503, headers, body: error('service_unavailable') });
  const thrown = await thrownBy(client.listWebhooks());
  expect(thrown).toMatchObject({ status: 503, errorCode: 'service_unavailable' });
  expect(repeats).toEqual([]);
});

test.for([
  ['a page of a proxy', 502, '<html>', '502'],
  ['an outcome that is not known', 400, error('payment_outcome_pending'), undefined],
  ['a call with the same key that runs', 409, error('idempotency_key_in_use'), undefined],
  ['half an answer', 200, '{"customerId":', undefined],
] as const)('%s is no definite answer [D-§8]', async ([, status, body, reason], { api }) => {
  const { client, proxy, repeats } = await open(api);
  proxy.reactNext({ status, body });
  await client.createCustomer({ body: { customerDetails: ADA } });
  expect(repeats).toHaveLength(1);
  if (reason !== undefined) expect(repeats[0]?.reason).toBe(reason);
});

test.for([
  [409, 'operation_not_allowed'],
  [422, 'idempotency_key_reused'],
  [410, 'cursor_expired'],
] as const)('%i %s is not repeated [D-§8]', async ([status, errorCode], { api }) => {
  const { client, proxy, repeats } = await open(api);
  proxy.reactNext({ status, body: error(errorCode) });
  const thrown = await thrownBy(client.createCustomer({ body: { customerDetails: ADA } }));
  expect(thrown).toMatchObject({ status, errorCode });
  expect(repeats).toEqual([]);
});

test('a refusal has the code, the words and the Request-Id of the API [D-§8]', async ({ api }) => {
  const { client } = await open(api);
  const customerId = 'cus_0002sSOLuT4mR8yNqD1sKjWb';
  const thrown = await thrownBy(client.getCustomer({ path: { customerId } }));
  expect(thrown).toMatchObject({
    name: 'PerennialError',
    message: expect.stringContaining('400 resource_not_found: ') as string,
    status: 400,
    errorCode: 'resource_not_found',
    requestId: expect.stringMatching(/^req_/) as string,
  });
});

test('a list gives the records of all pages, and a path parameter is encoded [D-§7]', async ({
  api,
}) => {
  const { client, proxy } = await open(api);
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    await client.createCustomer({ body: { customerDetails: { name } } });
  }
  const pages = client.each('listCustomers', { query: { limit: 2 } });
  expect(await names(pages)).toEqual(['e', 'd', 'c', 'b', 'a']);
  expect(proxy.requests.filter(({ call }) => call.startsWith('GET'))).toHaveLength(3);
  await thrownBy(client.getCustomer({ path: { customerId: '../webhook?x=1' } }));
  expect(proxy.requests.at(-1)?.call).toBe('GET /customer/..%2Fwebhook%3Fx%3D1');
});

test('the feed goes on behind a cursor, also after a lost answer, and ends without a wait [D-56]', async ({
  api,
}) => {
  const { client, proxy, emitOne } = await open(api);
  for (let count = 0; count < 3; count += 1) await emitOne();
  proxy.reactNext('pass', 'drop');
  const seen: number[] = [];
  let stored = '';
  for await (const { events, after } of client.feed({ limit: 2, wait: 0 })) {
    seen.push(...events.map(({ event }) => event.sequence));
    stored = after;
  }
  expect(seen).toEqual([1, 2, 3]);
  await emitOne();
  for await (const { events } of client.feed({ after: stored, wait: 0 })) {
    expect(events).toMatchObject([
      { sequence: 4, eventType: 'subscription.cycle_charged', event: { sequence: 4 } },
    ]);
    expect(JSON.parse(events[0]!.body)).toEqual(events[0]!.event);
  }
});

test('the feed waits for the next event until its signal aborts [D-56]', async ({ api }) => {
  const { client, proxy, emitOne } = await open(api);
  const stop = new AbortController();
  const feed = client.feed({ after: 'now' }, { signal: stop.signal });
  const begin = await feed.next();
  expect(begin.value).toMatchObject({ events: [] });
  const next = feed.next();
  await expect.poll(() => proxy.requests.length).toBe(2);
  await emitOne();
  expect((await next).value).toMatchObject({ events: [{ sequence: 1 }] });
  const waiting = feed.next();
  await expect.poll(() => proxy.requests.length).toBe(3);
  stop.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  expect(await feed.next()).toEqual({ done: true, value: undefined });
});
