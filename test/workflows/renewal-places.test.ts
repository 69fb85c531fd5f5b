import { expect } from 'vitest';
import { RenewalPlaces } from '../../domain/subscription/renewal-places.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TimeSkippingEnvironment } from '../support/test-environment.ts';

const SLOT_MS = 4_000;
const DAY_MS = 86_400_000;

/** Room for one renewal in 4 s, and for one more of a small merchant, which leaves the next slot empty. */
const test = onTimeSkippingServerWith({ places: new RenewalPlaces(0.25) });

/** The date and the time of each charge of a subscription. */
async function charges(env: TimeSkippingEnvironment, ref: SubscriptionRef) {
  const events = await env.events(ref);
  return events
    .filter(({ eventType }) => eventType === 'subscription.cycle_charged')
    .map(({ eventTime, nextPaymentDate }) => [Number(eventTime), Number(nextPaymentDate)] as const);
}

test('renewals of one instant are charged one after the other, each for its own date, and so are those of the next month [D-05, D-59]', async ({
  env,
}) => {
  const subscriptions: SubscriptionRef[] = [];
  for (let n = 0; n < 3; n += 1) {
    const ref = await env.create({ createdAt: await env.server.currentTimeMs() });
    expect((await payCheckout(env, ref)).kind).toBe('result');
    subscriptions.push(ref);
  }
  const dueAt = (await env.server.currentTimeMs()) + DAY_MS;
  for (const ref of subscriptions) {
    const edit = { kind: 'edit', commandId: 'edit-1', newNextPaymentAt: dueAt } as const;
    expect(await env.execute(ref, edit)).toEqual({ kind: 'result', result: { kind: 'done' } });
  }
  const jitters = () =>
    Promise.all(subscriptions.map(async (ref) => (await env.state(ref)).jitterMs));
  const first = await jitters();
  expect(first.slice(0, 2)).toEqual([0, 0]);
  expect(first[2]).toBeGreaterThanOrEqual(2 * SLOT_MS);
  expect(first[2]).toBeLessThan(3 * SLOT_MS);

  await env.server.sleep(2 * DAY_MS);
  const nextAt = nextMonth(dueAt);
  for (const [n, ref] of subscriptions.entries()) {
    await expect.poll(() => charges(env, ref)).toHaveLength(2);
    const [chargedAt, nextDate] = (await charges(env, ref))[1]!;
    expect(chargedAt - dueAt).toBeGreaterThanOrEqual(first[n]!);
    // The next date comes from the calendar, not from the time of the charge.
    expect(nextDate).toBe(nextAt);
  }
  const second = await jitters();
  const [none, alsoNone, some] = second.toSorted((a, b) => a - b);
  expect([none, alsoNone]).toEqual([0, 0]);
  expect(some).toBeGreaterThanOrEqual(2 * SLOT_MS);

  await env.server.sleep(nextAt - dueAt);
  for (const [n, ref] of subscriptions.entries()) {
    await expect.poll(() => charges(env, ref)).toHaveLength(3);
    expect((await charges(env, ref))[2]![0] - nextAt).toBeGreaterThanOrEqual(second[n]!);
    expect(await env.book(ref)).toHaveLength(3);
  }
});

/** The same day of the next month, or its last day. */
function nextMonth(at: number): number {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  const lastDay = new Date(Date.UTC(year, month + 2, 0)).getUTCDate();
  return (
    at +
    Date.UTC(year, month + 1, Math.min(date.getUTCDate(), lastDay)) -
    Date.UTC(year, month, date.getUTCDate())
  );
}
