import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApiWorld } from './api-world.ts';
import type { ApiWorld } from './api-world.ts';
import { subscriptionIn, readSubscription } from './subscription-fixtures.ts';
import type { CreatedSubscription } from './subscription-fixtures.ts';

let world: ApiWorld;

beforeAll(async () => {
  world = await createApiWorld();
});
afterAll(() => world.close());

const CHRISTMAS = Date.UTC(2027, 11, 24, 18);

const pause = ({ subscriptionId }: CreatedSubscription) =>
  world.call('POST', '/subscription/merchant/pause', { body: { subscriptionId } });
const unpause = ({ subscriptionId }: CreatedSubscription, changes: object) =>
  world.call('POST', '/subscription/merchant/unpause', { body: { subscriptionId, ...changes } });

test.each(['TRIALING', 'ACTIVE', 'UNPAID'] as const)(
  'a pause removes the next payment date of a subscription that is %s [D-§4]',
  async (status) => {
    const subscription = await subscriptionIn(world, status);
    const before = await readSubscription(world, subscription);
    expect(before).toHaveProperty('updatePaymentMethodLink');
    const { updatePaymentMethodLink: _, ...kept } = before;
    const answer = await pause(subscription);
    expect([answer.status, answer.text]).toEqual([200, '{}']);
    expect(await readSubscription(world, subscription)).toEqual({
      ...kept,
      status: 'PAUSED',
      nextPaymentDate: null,
    });
  },
);

test('an unpause makes the given date the next payment and the new anchor [IF-4.8, D-§4]', async () => {
  const subscription = await subscriptionIn(world, 'PAUSED');
  const answer = await unpause(subscription, { newNextPaymentDate: CHRISTMAS });
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(await readSubscription(world, subscription)).toMatchObject({
    status: 'ACTIVE',
    nextPaymentDate: CHRISTMAS,
    remainingCycleCount: 11,
  });
  await world.workflows.fallDue(subscription.ref);
  expect(await readSubscription(world, subscription)).toMatchObject({
    status: 'ACTIVE',
    nextPaymentDate: Date.UTC(2028, 0, 24, 18),
    remainingCycleCount: 10,
  });
});

describe('an unpause', () => {
  const DATE = 'newNextPaymentDate: must be epoch milliseconds before the year 2200';
  test.each<[string, unknown, string]>([
    ['no date [D-§4]', undefined, 'newNextPaymentDate: is required'],
    ['a null date [D-10a]', null, 'newNextPaymentDate: is required'],
    ['a date as text [D-04]', '1830000000000', DATE],
    ['a fractional date [D-04]', 1.5, DATE],
    ['a date before 1970 [D-04]', -1, DATE],
    ['a date in 2200 [D-06]', Date.UTC(2200, 0, 1), DATE],
    ['a date in the past [D-§4]', 1_000, 'newNextPaymentDate must lie in the future.'],
  ])('is refused with %s', async (_, newNextPaymentDate, description) => {
    const subscription = await subscriptionIn(world, 'PAUSED');
    const answer = await unpause(subscription, { newNextPaymentDate });
    expect([answer.status, answer.json]).toEqual([
      400,
      { errorCode: 'bad_request', errorDescription: description },
    ]);
    expect(await readSubscription(world, subscription)).toMatchObject({ status: 'PAUSED' });
  });
});

test('an unpause is refused when its date is not after the test clock’s time [D-§4, D-60]', async () => {
  const clock = await world.call('POST', '/test-clock/create', { body: { now: CHRISTMAS } });
  const { testClockId } = clock.json as { testClockId: string };
  const subscription = await subscriptionIn(world, 'PAUSED', { testClockId });
  expect((await unpause(subscription, { newNextPaymentDate: CHRISTMAS })).status).toBe(400);
  expect((await unpause(subscription, { newNextPaymentDate: CHRISTMAS + 1 })).status).toBe(200);
});
