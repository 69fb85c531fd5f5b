import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { subscriptionIn, readSubscription } from '../../support/fixtures/subscriptions.ts';
import type { CreatedSubscription } from '../../support/fixtures/subscriptions.ts';
import { createClock } from '../../support/fixtures/test-clocks.ts';

const CHRISTMAS = Date.UTC(2027, 11, 24, 18);

const pause = (api: ApiEnvironment, { subscriptionId }: CreatedSubscription) =>
  api.call('POST', '/subscription/merchant/pause', { body: { subscriptionId } });
const unpause = (api: ApiEnvironment, { subscriptionId }: CreatedSubscription, changes: object) =>
  api.call('POST', '/subscription/merchant/unpause', { body: { subscriptionId, ...changes } });

test.for(['TRIALING', 'ACTIVE', 'UNPAID'] as const)(
  'a pause removes the next payment date of a subscription that is %s [D-§4]',
  async (status, { api }) => {
    const subscription = await subscriptionIn(api, status);
    const before = await readSubscription(api, subscription);
    expect(before).toHaveProperty('updatePaymentMethodLink');
    const { updatePaymentMethodLink: _, ...kept } = before;
    const answer = await pause(api, subscription);
    expect([answer.status, answer.text]).toEqual([200, '{}']);
    expect(await readSubscription(api, subscription)).toEqual({
      ...kept,
      status: 'PAUSED',
      nextPaymentDate: null,
    });
  },
);

test('an unpause makes the given date the next payment date and the new billing anchor [IF-4.8, D-§4]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'PAUSED');
  const answer = await unpause(api, subscription, { newNextPaymentDate: CHRISTMAS });
  expect([answer.status, answer.text]).toEqual([200, '{}']);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    nextPaymentDate: CHRISTMAS,
    remainingCycleCount: 11,
  });
  await api.workflows.fallDue(subscription.ref);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'ACTIVE',
    nextPaymentDate: Date.UTC(2028, 0, 24, 18),
    remainingCycleCount: 10,
  });
});

test('an unpause is refused when its date is not after the test clock’s time [D-§4, D-60]', async ({
  api,
}) => {
  const testClockId = await createClock(api, CHRISTMAS);
  const subscription = await subscriptionIn(api, 'PAUSED', { testClockId });
  expect((await unpause(api, subscription, { newNextPaymentDate: CHRISTMAS })).status).toBe(400);
  expect((await unpause(api, subscription, { newNextPaymentDate: CHRISTMAS + 1 })).status).toBe(
    200,
  );
});
