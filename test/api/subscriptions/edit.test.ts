import { describe, expect } from 'vitest';
import { test as apiTest } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { readSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';
import type { CreatedSubscription } from '../../support/fixtures/subscriptions.ts';
import { expectError } from '../../support/answers.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

const test = apiTest.extend('active', { scope: 'file' }, ({ api }) =>
  subscriptionIn(api, 'ACTIVE'),
);

const CHRISTMAS = Date.UTC(2027, 11, 24, 18);

const edit = (api: ApiEnvironment, { subscriptionId }: CreatedSubscription, changes: object) =>
  api.call('POST', '/subscription/edit', { body: { subscriptionId, ...changes } });

describe('an edit that does not fit the subscription', () => {
  test.for<[string, object, string]>([
    [
      'an amount below the minimum of its currency [D-03]',
      { newAmount: 100 },
      'newAmount must be at least 101 in USD',
    ],
    [
      'an amount above the maximum of its currency [D-03]',
      { newAmount: 100_000_000 },
      'newAmount must be at most 99999999 in USD',
    ],
    [
      'a cycle count that does not exceed the charged cycles [D-15]',
      { newCycleCount: 1 },
      'newCycleCount must exceed the 1 cycles already charged',
    ],
    [
      'a date in the past [D-15]',
      { newNextPaymentDate: 0 },
      'newNextPaymentDate must lie in the future.',
    ],
    [
      'a last billing date after 2199 [D-06]',
      { interval: 'YEAR', intervalCount: 10, newCycleCount: 20, newNextPaymentDate: CHRISTMAS },
      'the last billing date must be before the year 2200',
    ],
  ])('is refused and changes nothing: %s', async ([, changes, description], { api, active }) => {
    const before = await readSubscription(api, active);
    const answer = await edit(api, active, changes);
    expectError(answer, 400, 'bad_request', description);
    expect(await readSubscription(api, active)).toEqual(before);
  });

  test('is refused when the new date is not after the time of the test clock [D-15, D-60]', async ({
    api,
  }) => {
    const testClockId = await createClock(api, CHRISTMAS);
    const subscription = await subscriptionIn(api, 'ACTIVE', { testClockId });
    const passed = await edit(api, subscription, { newNextPaymentDate: CHRISTMAS });
    expectError(passed, 400, 'bad_request', 'newNextPaymentDate must lie in the future.');
    expect((await edit(api, subscription, { newNextPaymentDate: CHRISTMAS + 1 })).status).toBe(200);
    expect(await readSubscription(api, subscription)).toMatchObject({
      nextPaymentDate: CHRISTMAS + 1,
    });
  });
});

test('an edit of all fields takes effect at once and keeps the status [IF-4.6, D-15]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const before = await readSubscription(api, subscription);
  const answer = await edit(api, subscription, {
    newAmount: 2_500,
    newCycleCount: 6,
    newNextPaymentDate: CHRISTMAS,
    interval: 'WEEK',
    intervalCount: 2,
    note: 'ignored',
  });
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(await readSubscription(api, subscription)).toEqual({
    ...before,
    amount: 2_500,
    cycleCount: 6,
    remainingCycleCount: 5,
    nextPaymentDate: CHRISTMAS,
    interval: 'WEEK',
    intervalCount: 2,
  });
});

test('an edit of one field changes no other field [IF-4.6]', async ({ api }) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  let expected = await readSubscription(api, subscription);
  for (const [changes, shown] of [
    [{ newAmount: 101 }, { amount: 101 }],
    [{ newCycleCount: 2 }, { cycleCount: 2, remainingCycleCount: 1 }],
    [{ newNextPaymentDate: CHRISTMAS }, { nextPaymentDate: CHRISTMAS }],
  ]) {
    expect((await edit(api, subscription, changes!)).status).toBe(200);
    expected = { ...expected, ...shown };
    expect(await readSubscription(api, subscription)).toEqual(expected);
  }
});

test('an edited payment date moves the end of a trial [D-15]', async ({ api }) => {
  const subscription = await subscriptionIn(api, 'TRIALING');
  expect((await edit(api, subscription, { newNextPaymentDate: CHRISTMAS })).status).toBe(200);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'TRIALING',
    nextPaymentDate: CHRISTMAS,
  });
});

test('in PAUSED, an edited payment date plans no payment and is replaced by the date of an unpause [D-15, IF-4.8]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'PAUSED');
  expect((await edit(api, subscription, { newNextPaymentDate: CHRISTMAS })).status).toBe(200);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'PAUSED',
    nextPaymentDate: null,
  });
  const { subscriptionId } = subscription;
  const unpaused = await api.call('POST', '/subscription/merchant/unpause', {
    body: { subscriptionId, newNextPaymentDate: CHRISTMAS + 1_000 },
  });
  expect([unpaused.status, unpaused.text]).toEqual([200, '{}']);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    nextPaymentDate: CHRISTMAS + 1_000,
  });
});
