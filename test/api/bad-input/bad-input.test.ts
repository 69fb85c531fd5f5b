import { expect } from 'vitest';
import { subscriptionBody, test } from '../../support/api-environment.ts';
import { BODIES, CLOCKS, CUSTOMERS, INVALID_KEYS, WEBHOOKS } from './others.ts';
import { PAYMENTS, SETUPS } from './payments.ts';
import { SUBSCRIPTIONS } from './subscriptions.ts';
import { expectError } from '../../support/answers.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

/** Requests that are refused, each with its exact answer. A refused request adds no row to any table. */

const CASES = [
  ...BODIES,
  ...CUSTOMERS,
  ...SUBSCRIPTIONS,
  ...PAYMENTS,
  ...SETUPS,
  ...WEBHOOKS,
  ...CLOCKS,
  ...INVALID_KEYS,
];

test('at least 60 refused requests are tested', () => {
  expect(CASES.length).toBeGreaterThanOrEqual(60);
});

test.for(CASES)(
  'a request is refused and adds no row: $name',
  async ({ method = 'POST', path, send, ...expected }, { api }) => {
    const before = await api.countRows();

    const answer = await api.call(method, path, send);

    expect({ status: answer.status, body: answer.json }).toEqual({
      status: expected.status ?? 400,
      body: { errorCode: expected.code ?? 'bad_request', errorDescription: expected.description },
    });
    expect(answer.headers['request-id']).toMatch(/^req_[0-9A-Za-z]{22}$/);
    expect(await api.countRows()).toEqual(before);
  },
);

test('a subscription is refused when its last billing date on a test clock is after 2199 [D-06, D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, Date.UTC(2199, 10, 30));
  const before = await api.countRows();

  const answer = await api.call('POST', '/subscription/create', {
    body: subscriptionBody({ testClockId }),
  });

  expectError(
    answer,
    400,
    'bad_request',
    'cycleCount: the last billing date must be before the year 2200',
  );
  expect(await api.countRows()).toEqual(before);
});
