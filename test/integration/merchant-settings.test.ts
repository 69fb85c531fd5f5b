import { expect } from 'vitest';
import { changeSettings } from '../../db/repositories/merchants/settings.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { jitterOf } from '../../domain/subscription/jitter.ts';
import { onDevServer } from '../support/environment.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import type { World } from '../support/world.ts';

const MINUTE_MS = 60_000;
const CREATED_AT = Date.parse('2026-01-31T12:00:00Z');

const test = onDevServer();

/** A paid subscription on its own test clock, with the times of its declined attempts. */
async function subscribed(world: World) {
  const clock = await world.createClock(CREATED_AT);
  const ref = await world.create({ createdAt: CREATED_AT, testClockId: clock });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  return { ref, clock, failedAt: () => failuresOf(world, ref) };
}

async function failuresOf(world: World, ref: SubscriptionRef): Promise<string[]> {
  const events = await world.events(ref);
  return events
    .filter(({ eventType }) => eventType === 'intent.failed')
    .map(({ eventTime }) => new Date(eventTime as number).toISOString().slice(0, 16));
}

const declineAll = (world: World, { subscriptionId }: SubscriptionRef) =>
  world.control('POST', '/control/declines', { subscriptionId, code: 'card_declined', count: 20 });

test('a new retry plan applies to the next dunning when one runs already [D-30]', async ({
  world,
}) => {
  const { merchantId } = world;
  const first = await subscribed(world);
  await declineAll(world, first.ref);
  await world.advance(first.clock, '2026-02-28T13:00:00Z');

  await changeSettings(world.db, merchantId, {
    retryPlan: { delaysMs: [90 * MINUTE_MS, 45 * MINUTE_MS], afterExhausted: 'end' },
  });
  const second = await subscribed(world);
  await declineAll(world, second.ref);
  await world.advance(first.clock, '2026-03-10T00:00:00Z');
  await world.advance(second.clock, '2026-03-10T00:00:00Z');

  expect(await first.failedAt()).toEqual([
    '2026-02-28T12:00',
    '2026-02-28T16:00',
    '2026-03-01T00:00',
    '2026-03-01T12:00',
    '2026-03-02T12:00',
  ]);
  expect(await world.state(first.ref)).toMatchObject({ status: 'UNPAID' });
  expect(await second.failedAt()).toEqual([
    '2026-02-28T12:00',
    '2026-02-28T13:30',
    '2026-02-28T14:15',
  ]);
  expect(await world.state(second.ref)).toMatchObject({
    status: 'ENDED',
    endReason: 'retries_exhausted',
  });
});

test('a renewal is charged at its share of the jitter when its merchant has set one [D-05]', async ({
  world,
}) => {
  const { merchantId } = world;
  const before = await subscribed(world);
  await changeSettings(world.db, merchantId, { jitterMs: 30 * MINUTE_MS });
  const after = await subscribed(world);
  const shareMs = jitterOf(after.ref.subscriptionId, 30 * MINUTE_MS);
  expect(await world.state(before.ref)).not.toHaveProperty('jitterMs');

  for (const { clock } of [before, after]) await world.advance(clock, '2026-02-28T12:30:00Z');
  const paidAt = async (ref: SubscriptionRef) =>
    (await world.events(ref))
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
