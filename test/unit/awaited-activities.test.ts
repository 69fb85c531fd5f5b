import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { activityInterceptor } from '../../activities/interceptors.ts';

const EDIT = { commandId: 'cmd_1', kind: 'edit', result: { kind: 'done' } };

test.each([
  ['a change by a command', 'subscription', { command: EDIT }, 1],
  ['a charge by a command', 'subscription', { opening: { command: EDIT } }, 1],
  ['a renewal', 'subscription', { opening: { command: null } }, 0],
  ['a look-up', 'subscription', { opening: null }, 0],
  ['a change by a timer', 'subscription', { command: null }, 0],
  ['an activity without input', 'subscription', undefined, 0],
  ['a payment', 'payment', { intentId: 'int_1' }, 1],
  ['a refund', 'refund', { refundId: 'ref_1' }, 1],
  ['a set-up', 'setupMethod', {}, 1],
  ['a late-charge watch', 'lateCharge', {}, 0],
  ['a delivery', 'webhookEndpoint', {}, 0],
])('%s: told that a payer or a merchant waits', async (_, workflowType, input, told) => {
  let calls = 0;
  const env = new MockActivityEnvironment(
    { workflowType },
    { interceptors: [activityInterceptor(() => (calls += 1))] },
  );
  expect(await env.run(async (given: unknown) => given, input)).toEqual(input);
  expect(calls).toBe(told);
});
