import { sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { limitsPerSecond } from '../../../api/http/caller.ts';
import { createMerchantWithCredential } from '../../../db/repositories/merchants/merchants.ts';
import { subscriptionBody, test as apiTest } from '../../support/api-environment.ts';
import type { Answer, ApiEnvironment } from '../../support/api-environment.ts';

const CUSTOMER = '/customer/cus_0000000000000000000000000';

/**
 * The environment `api` counts requests in windows of 600 s, longer than any test. `short` has the window of
 * production, 1 s, and allows one request in it, because a slow machine may serve only two requests a second.
 */
const test = apiTest
  .extend(
    'apiOptions',
    { scope: 'file' },
    { rateLimits: { windowSeconds: 600, requests: 8, readsOfOneSubscription: 2 } },
  )
  .extend('short', { scope: 'file' }, ({ createApi }) =>
    createApi({ rateLimits: { windowSeconds: 1, requests: 1, readsOfOneSubscription: 1 } }),
  )
  .extend('unlimited', { scope: 'file' }, ({ createApi }) => createApi({}));

/** Creates a merchant that has sent no request. */
const newMerchant = ({ db, pepper }: ApiEnvironment) =>
  createMerchantWithCredential(db, { name: 'Fresh Ltd', mode: 'test', pepper });

async function inTurn(count: number, send: () => Promise<Answer>): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < count; i += 1) statuses.push((await send()).status);
  return statuses;
}

async function repeat(
  send: () => Promise<Answer>,
  isEnough: (answer: Answer) => boolean,
): Promise<Answer> {
  for (;;) {
    const answer = await send();
    if (isEnough(answer)) return answer;
  }
}

const isRefused = ({ status }: Answer): boolean => status === 429;
const isServed = (answer: Answer): boolean => !isRefused(answer);

describe('the rate limit', () => {
  test('allows the given number of requests, and 10 reads of one subscription, a second [D-22]', () => {
    expect(limitsPerSecond(100)).toEqual({
      windowSeconds: 1,
      requests: 100,
      readsOfOneSubscription: 10,
    });
  });

  test('refuses a merchant’s request above the limit but no request of another merchant [D-22]', async ({
    api,
  }) => {
    const merchant = await newMerchant(api);
    const ask = () => api.call('GET', CUSTOMER, { as: merchant });
    expect(await inTurn(9, ask)).toEqual([400, 400, 400, 400, 400, 400, 400, 400, 429]);
    const neighbour = await newMerchant(api);
    expect(await inTurn(1, () => api.call('GET', CUSTOMER, { as: neighbour }))).toEqual([400]);
  });

  test('returns Retry-After, and the merchant’s later requests are served again [D-22]', async ({
    short,
  }) => {
    const ask = () => short.call('GET', CUSTOMER);
    const refused = await repeat(ask, isRefused);
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.headers['request-id']).toMatch(/^req_/);
    expect(refused.json).toEqual({
      errorCode: 'rate_limit_exceeded',
      errorDescription: 'Too many requests. Wait before trying again.',
    });
    const served = await repeat(ask, isServed);
    expect(served.json).toMatchObject({ errorCode: 'resource_not_found' });
  });

  test('does not count requests with a merchant’s key id and a wrong secret [D-22, D-20]', async ({
    api,
  }) => {
    const merchant = await newMerchant(api);
    const stranger = { keyId: merchant.keyId, secret: 'sk_test_guess' };
    const guess = () => api.call('GET', CUSTOMER, { as: stranger });
    expect(new Set(await inTurn(20, guess))).toEqual(new Set([401]));
    const ask = () => api.call('GET', CUSTOMER, { as: merchant });
    expect(await inTurn(9, ask)).toEqual([400, 400, 400, 400, 400, 400, 400, 400, 429]);
  });

  test('refuses a request before its body is read [D-22]', async ({ api }) => {
    const merchant = await newMerchant(api);
    const send = () => api.call('POST', '/customer/create', { as: merchant, raw: '{' });
    expect(await inTurn(9, send)).toEqual([400, 400, 400, 400, 400, 400, 400, 400, 429]);
  });

  test('stores no refusal under an Idempotency-Key [D-22, D-17]', async ({ short }) => {
    let key = '';
    let count = 0;
    const send = () => {
      count += 1;
      key = `limited-${count}`;
      return short.call('POST', '/subscription/create', { body: subscriptionBody(), key });
    };
    await repeat(send, isRefused);
    const sendAgain = () =>
      short.call('POST', '/subscription/create', { body: subscriptionBody(), key });
    const done = await repeat(sendAgain, isServed);
    expect(done.status).toBe(200);
    expect(done.headers['idempotent-replayed']).toBeUndefined();
  });

  test('refuses frequent reads of one subscription but serves reads of another subscription [IF-4.5, D-22]', async ({
    api,
  }) => {
    const merchant = await newMerchant(api);
    const create = async (): Promise<string> => {
      const options = { body: subscriptionBody(), as: merchant };
      const answer = await api.call('POST', '/subscription/create', options);
      return (answer.json as { subscriptionId: string }).subscriptionId;
    };
    const polled = await create();
    const other = await create();
    const read = (id: string) => () =>
      api.call('GET', `/subscription/get-subscription/${id}`, { as: merchant });
    expect(await inTurn(3, read(polled))).toEqual([200, 200, 429]);
    expect(await inTurn(1, read(other))).toEqual([200]);
    expect((await read(polled)()).json).toMatchObject({ errorCode: 'rate_limit_exceeded' });
  });

  test('counts the reads of a subscription, its next charges and its timeline together [D-22]', async ({
    api,
  }) => {
    const merchant = await newMerchant(api);
    const created = await api.call('POST', '/subscription/create', {
      body: subscriptionBody(),
      as: merchant,
    });
    const { subscriptionId } = created.json as { subscriptionId: string };
    const read = async (kind: string) => {
      const path = `/subscription/${kind}/${subscriptionId}`;
      return (await api.call('GET', path, { as: merchant })).status;
    };
    expect(await read('upcoming')).toBe(200);
    expect(await read('timeline')).toBe(200);
    expect(await read('upcoming')).toBe(429);
    expect(await read('timeline')).toBe(429);
    expect(await read('get-subscription')).toBe(429);
  });

  test('counts a simulation of a subscription as a read of it [D-22, D-58]', async ({ api }) => {
    const merchant = await newMerchant(api);
    const post = (path: string, body: object) => api.call('POST', path, { body, as: merchant });
    const created = await post('/subscription/create', subscriptionBody());
    const { subscriptionId } = created.json as { subscriptionId: string };
    const again = () => post('/subscription/simulate', { subscriptionId });
    expect(await inTurn(3, again)).toEqual([200, 200, 429]);
    const read = () =>
      api.call('GET', `/subscription/upcoming/${subscriptionId}`, { as: merchant });
    expect(await inTurn(1, read)).toEqual([429]);
    const ofNew = () => post('/subscription/simulate', subscriptionBody());
    expect(await inTurn(3, ofNew)).toEqual([200, 200, 200]);
  });
});

test('one list or simulation of a merchant runs at a time, 20 wait, and further ones are refused [D-22]', async ({
  unlimited: { db, call, other },
}) => {
  const list = () => call('GET', '/subscription?limit=100');
  const created = await call('POST', '/subscription/create', { body: subscriptionBody() });
  const { subscriptionId } = created.json as { subscriptionId: string };
  const simulate = () => call('POST', '/subscription/simulate', { body: { subscriptionId } });
  const sent = await db.transaction(async (tx) => {
    await tx.execute(sql`lock table subscription in access exclusive mode`);
    const answers = Array.from({ length: 22 }, (_, index) => (index % 2 ? simulate() : list()));
    const refused = await Promise.any(
      answers.map(async (answer) => ((await answer).status === 429 ? answer : Promise.reject())),
    );
    expect(refused.headers['retry-after']).toBe('1');
    expect(refused.json).toMatchObject({ errorCode: 'rate_limit_exceeded' });
    // The others wait for the locked table. A list of another merchant waits for none of them.
    expect(await call('GET', '/customer?limit=100', { as: other })).toMatchObject({ status: 200 });
    return answers;
  });
  const statuses = (await Promise.all(sent)).map(({ status }) => status);
  expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(21).fill(200), 429]);
});
