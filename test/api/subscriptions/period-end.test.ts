import { expect } from 'vitest';
import { test } from '../../support/api-environment.ts';
import type { ApiEnvironment } from '../../support/api-environment.ts';
import { expectError } from '../../support/answers.ts';
import { readSubscription, subscriptionIn } from '../../support/fixtures/subscriptions.ts';

/** A cancellation at the end of the period, the resume that undoes it, and a pause with an end. */

const CHRISTMAS = Date.UTC(2027, 11, 24, 18);

const post = (api: ApiEnvironment, command: string, body: object) =>
  api.call('POST', `/subscription/merchant/${command}`, { body });

test('a subscription shows its cancellation at the end of the period, until a resume undoes it [D-§4, IF-4.7]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const { subscriptionId } = subscription;
  const before = await readSubscription(api, subscription);
  const cancelled = await post(api, 'cancel', { subscriptionId, atPeriodEnd: true });
  expect([cancelled.status, cancelled.text]).toEqual([200, '{}']);
  const { currentPeriodEnd } = before;
  expect(await readSubscription(api, subscription)).toEqual({
    ...before,
    nextPaymentDate: null,
    cancelAt: currentPeriodEnd,
  });
  const customer = await api.call('GET', `/customer/${String(before['customerId'])}/state`);
  expect(customer.json).toMatchObject({
    subscriptions: [{ status: 'ACTIVE', currentPeriodEnd, cancelAt: currentPeriodEnd }],
  });
  const outlook = await api.call('GET', `/subscription/upcoming/${subscriptionId}`);
  expect(outlook.json).toEqual({ data: [] });

  const resumed = await post(api, 'resume', { subscriptionId });
  expect([resumed.status, resumed.text]).toEqual([200, '{}']);
  expect(await readSubscription(api, subscription)).toEqual(before);
  expectError(
    await post(api, 'resume', { subscriptionId }),
    400,
    'operation_not_allowed',
    'The subscription is not cancelled.',
  );
});

test('a subscription with a cancellation at the end of its trial shows the trial’s end as cancelAt [D-§4]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'TRIALING');
  const { subscriptionId } = subscription;
  const { nextPaymentDate } = await readSubscription(api, subscription);
  await post(api, 'cancel', { subscriptionId, atPeriodEnd: true });
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'TRIALING',
    nextPaymentDate: null,
    currentPeriodEnd: nextPaymentDate,
    cancelAt: nextPaymentDate,
  });
});

test('a cancellation with atPeriodEnd false ends the subscription at once [IF-4.7]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const { subscriptionId } = subscription;
  await post(api, 'cancel', { subscriptionId, atPeriodEnd: false });
  const ended = await readSubscription(api, subscription);
  expect(ended).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
  expect(ended).not.toHaveProperty('cancelAt');
});

test('a subscription shows when its pause with a date ends, until an unpause [D-§4]', async ({
  api,
}) => {
  const subscription = await subscriptionIn(api, 'ACTIVE');
  const { subscriptionId } = subscription;
  const paused = await post(api, 'pause', { subscriptionId, resumeAt: CHRISTMAS });
  expect([paused.status, paused.text]).toEqual([200, '{}']);
  expect(await readSubscription(api, subscription)).toMatchObject({
    status: 'PAUSED',
    nextPaymentDate: null,
    resumeAt: CHRISTMAS,
  });
  const newNextPaymentDate = CHRISTMAS + 1_000;
  expect((await post(api, 'unpause', { subscriptionId, newNextPaymentDate })).status).toBe(200);
  const unpaused = await readSubscription(api, subscription);
  expect(unpaused).toMatchObject({ status: 'ACTIVE', nextPaymentDate: newNextPaymentDate });
  expect(unpaused).not.toHaveProperty('resumeAt');
});
