import { expect } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { jitterOf } from '../../domain/delays.ts';
import { onDevServer as test } from '../support/environment.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

const MINUTE_MS = 60_000;
const CREATED_AT = Date.parse('2026-01-31T12:00:00Z');

/** Creates a paid subscription on its own test clock. `failedAt` reads the times of its declined attempts. */
async function subscribed(env: TestEnvironment) {
  const { ref, clock } = await paidOnClock(env, CREATED_AT);
  return { ref, clock, failedAt: () => failuresOf(env, ref) };
}

async function failuresOf(env: TestEnvironment, ref: SubscriptionRef): Promise<string[]> {
  const events = await env.events(ref);
  return events
    .filter(({ eventType }) => eventType === 'intent.failed')
    .map(({ eventTime }) => new Date(eventTime as number).toISOString().slice(0, 16));
}

const declineAll = (env: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  env.control('POST', '/control/declines', { subscriptionId, code: 'card_declined', count: 20 });

test('a new retry plan applies to the next dunning but not to a dunning that has begun [D-30]', async ({
  env,
}) => {
  const { merchantId } = env;
  const first = await subscribed(env);
  await declineAll(env, first.ref);
  await env.advance(first.clock, '2026-02-28T13:00:00Z');

  await changeSettings(env.db, merchantId, {
    retryPlan: { delaysMs: [90 * MINUTE_MS, 45 * MINUTE_MS], afterExhausted: 'end' },
  });
  const second = await subscribed(env);
  await declineAll(env, second.ref);
  await env.advance(first.clock, '2026-03-10T00:00:00Z');
  await env.advance(second.clock, '2026-03-10T00:00:00Z');

  expect(await first.failedAt()).toEqual([
    '2026-02-28T12:00',
    '2026-02-28T16:00',
    '2026-03-01T00:00',
    '2026-03-01T12:00',
    '2026-03-02T12:00',
  ]);
  expect(await env.state(first.ref)).toMatchObject({ status: 'UNPAID' });
  expect(await second.failedAt()).toEqual([
    '2026-02-28T12:00',
    '2026-02-28T13:30',
    '2026-02-28T14:15',
  ]);
  expect(await env.state(second.ref)).toMatchObject({
    status: 'ENDED',
    endReason: 'retries_exhausted',
  });
});

test('a renewal is charged at its due time plus the subscription’s jitter when the merchant has set a jitter [D-05]', async ({
  env,
}) => {
  const { merchantId } = env;
  const before = await subscribed(env);
  await changeSettings(env.db, merchantId, { jitterMs: 30 * MINUTE_MS });
  const after = await subscribed(env);
  const shareMs = jitterOf(after.ref.subscriptionId, 30 * MINUTE_MS);
  expect(await env.state(before.ref)).toMatchObject({ jitterMs: 0 });

  for (const { clock } of [before, after]) await env.advance(clock, '2026-02-28T12:30:00Z');
  const paidAt = async (ref: SubscriptionRef) =>
    (await env.events(ref))
      .filter(({ eventType }) => eventType === 'subscription.cycle_charged')
      .map(({ eventTime, nextPaymentDate }) => [eventTime, nextPaymentDate]);
  const dueAt = Date.parse('2026-02-28T12:00:00Z');
  const nextAt = Date.parse('2026-03-31T12:00:00Z');
  expect(await paidAt(before.ref)).toEqual([
    [CREATED_AT, dueAt],
    [dueAt, nextAt],
  ]);
  expect(await paidAt(after.ref)).toEqual([
    [CREATED_AT, dueAt],
    [dueAt + shareMs, nextAt],
  ]);
});
