import { expect } from 'vitest';
import { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TimeSkippingEnvironment } from '../support/test-environment.ts';

const SLOT_MS = 4_000;
const DAY_MS = 86_400_000;

/** Room for one renewal in 4 s, and for one more of a small merchant. */
const test = onTimeSkippingServerWith({ places: new RenewalPlaces(0.25) });

/** The date and the time of each charge of a subscription. */
async function charges(env: TimeSkippingEnvironment, ref: SubscriptionRef) {
  const events = await env.events(ref);
  return events
    .filter(({ eventType }) => eventType === 'subscription.cycle_charged')
    .map(({ eventTime, nextPaymentDate }) => [Number(eventTime), Number(nextPaymentDate)] as const);
}

test('renewals of one instant are charged one after the other, each for its own date, and so is an edited date [D-05, D-59]', async ({
  env,
}) => {
  const now = await env.server.currentTimeMs();
  await env.server.sleep(SLOT_MS - (now % SLOT_MS) + 1_000);
  const createdAt = await env.server.currentTimeMs();
  const subscriptions: SubscriptionRef[] = [];
  for (let n = 0; n < 3; n += 1) {
    const ref = await env.create({ createdAt });
    expect((await payCheckout(env, ref)).kind).toBe('result');
    subscriptions.push(ref);
  }
  await env.server.sleep(40 * DAY_MS);
  const delays: number[] = [];
  for (const ref of subscriptions) {
    await eventually(async () => expect(await charges(env, ref)).toHaveLength(2));
    const [first, second] = await charges(env, ref);
    delays.push(second![0] - first![1]);
    // The next date comes from the calendar, not from the time of the charge.
    expect(new Date(second![1]).getUTCDate()).toBe(new Date(first![0]).getUTCDate());
  }
  expect(delays[0]).toBeLessThan(1_000);
  expect(delays[1]).toBeLessThan(1_000);
  expect(delays[2]).toBeGreaterThanOrEqual(1_000);
  expect(delays[2]).toBeLessThan(2 * SLOT_MS);

  const dueAt = (await env.server.currentTimeMs()) + DAY_MS;
  for (const ref of subscriptions) {
    const edit = { kind: 'edit', commandId: 'edit-1', newNextPaymentAt: dueAt } as const;
    expect(await env.execute(ref, edit)).toEqual({ kind: 'result', result: { kind: 'done' } });
  }
  const jitters = await Promise.all(
    subscriptions.map(async (ref) => (await env.state(ref)).jitterMs),
  );
  expect(jitters.slice(0, 2)).toEqual([0, 0]);
  expect(jitters[2]).toBeGreaterThan(0);
  await env.server.sleep(2 * DAY_MS);
  for (const [n, ref] of subscriptions.entries()) {
    await eventually(async () => expect(await charges(env, ref)).toHaveLength(3));
    const third = (await charges(env, ref))[2]!;
    expect(third[0] - dueAt).toBeGreaterThanOrEqual(jitters[n]!);
    expect(third[0] - dueAt).toBeLessThan(jitters[n]! + 1_000);
    expect(await env.book(ref)).toHaveLength(3);
  }
});
