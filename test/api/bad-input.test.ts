import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiWorld, subscriptionBody } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { BODIES, CLOCKS, CUSTOMERS, OTHERS, WEBHOOKS } from './bad-input-others.ts';
import { PAYMENTS, SETUPS } from './bad-input-payments.ts';
import { SUBSCRIPTIONS } from './bad-input-subscriptions.ts';

/** Malformed requests, each with its exact answer. No table gets a row from one. */

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const CASES = [
  ...BODIES,
  ...CUSTOMERS,
  ...SUBSCRIPTIONS,
  ...PAYMENTS,
  ...SETUPS,
  ...WEBHOOKS,
  ...CLOCKS,
  ...OTHERS,
];

test('the table lists at least 60 malformed requests', () => {
  expect(CASES.length).toBeGreaterThanOrEqual(60);
});

test.each(CASES)(
  'a request is refused and leaves no row: $name',
  async ({ method = 'POST', path, send, ...expected }) => {
    const before = await world.countRows();

    const answer = await world.call(method, path, send);

    expect({ status: answer.status, body: answer.json }).toEqual({
      status: expected.status ?? 400,
      body: { errorCode: expected.code ?? 'bad_request', errorDescription: expected.description },
    });
    expect(answer.headers['request-id']).toMatch(/^req_[0-9A-Za-z]{22}$/);
    expect(await world.countRows()).toEqual(before);
  },
);

test('a subscription is refused when its test clock leads past 2200 [D-06, D-60]', async () => {
  const clock = await world.call('POST', '/test-clock/create', {
    body: { now: Date.UTC(2199, 10, 30) },
  });
  const { testClockId } = clock.json as { testClockId: string };
  const before = await world.countRows();

  const answer = await world.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId }),
  });

  expect(answer.status).toBe(400);
  expect(answer.json).toEqual({
    errorCode: 'bad_request',
    errorDescription: 'cycleCount: the last billing date must be before the year 2200',
  });
  expect(await world.countRows()).toEqual(before);
});
