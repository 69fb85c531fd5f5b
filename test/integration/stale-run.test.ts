import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { describe, expect } from 'vitest';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { onDevServer as test } from '../support/environment.ts';
import { recordAndLose } from '../support/lost-task.ts';
import { paidOnClock, payCheckout } from '../support/pay-checkout.ts';
import { repairsOf } from '../support/repairs.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/**
 * A run commits a command to the row, and its workflow task is then lost with the Temporal server. No message tells the
 * run of the newer row.
 */

const HOUR = 3_600_000;
const MAY_10 = Date.parse('2027-05-10T12:00:00Z');

const charged = async (env: TestEnvironment, ref: SubscriptionRef): Promise<string[]> =>
  (await env.events(ref))
    .filter((event) => event['eventType'] === 'subscription.cycle_charged')
    .map((event) => new Date(Number(event['eventTime'])).toISOString());

const book = async (env: TestEnvironment, ref: SubscriptionRef): Promise<string[]> =>
  (await env.book(ref)).map(
    ({ outcome, amountMinor, sentCount }) => `${outcome} ${amountMinor} x${sentCount}`,
  );

const PAID = 'succeeded 1999 x1';

/** Proves that a further advance to the same instant and a sweep do nothing. */
async function expectNothingFurther(
  env: TestEnvironment,
  ref: SubscriptionRef,
  clock: string,
  at: string,
) {
  const before = [await env.events(ref), await book(env, ref)];
  await env.advance(clock, at);
  expect(await repairsOf(env)).toEqual({});
  expect([await env.events(ref), await book(env, ref)]).toEqual(before);
}

describe('a test clock is READY only after a run that is older than its row has charged', () => {
  test('the daily cycles since an unpause [D-60, D-32]', async ({ env }) => {
    const { clock, ref } = await paidOnClock(env, MAY_10, { interval: 'DAY', cycleCount: 60 });
    await env.execute(ref, { kind: 'pause', commandId: randomUUID() });
    const newNextPaymentAt = Date.parse('2027-05-31T12:00:00Z');
    await recordAndLose(env, ref, { kind: 'unpause', newNextPaymentAt }, MAY_10);

    await env.advance(clock, '2027-06-05T00:00:00Z');
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 6 });
    await env.advance(clock, '2027-06-09T12:00:00Z');
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 11 });
    expect(await charged(env, ref)).toEqual([
      '2027-05-10T12:00:00.000Z',
      '2027-05-31T12:00:00.000Z',
      ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((day) => `2027-06-0${day}T12:00:00.000Z`),
    ]);
    expect(await book(env, ref)).toEqual(Array.from({ length: 11 }, () => PAID));
    await expectNothingFurther(env, ref, clock, '2027-06-09T12:00:00Z');
  });

  test('the cycles since an edit to an earlier date [D-60, D-15]', async ({ env }) => {
    const { clock, ref } = await paidOnClock(env, MAY_10, { interval: 'YEAR', cycleCount: 5 });
    const newNextPaymentAt = Date.parse('2027-05-20T12:00:00Z');
    const order = { kind: 'edit', newNextPaymentAt, interval: 'MONTH' } as const;
    await recordAndLose(env, ref, order, MAY_10);

    await env.advance(clock, '2027-07-30T00:00:00Z');
    expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 4 });
    expect(await charged(env, ref)).toEqual([
      '2027-05-10T12:00:00.000Z',
      '2027-05-20T12:00:00.000Z',
      '2027-06-20T12:00:00.000Z',
      '2027-07-20T12:00:00.000Z',
    ]);
    expect(await book(env, ref)).toEqual([PAID, PAID, PAID, PAID]);
    await expectNothingFurther(env, ref, clock, '2027-07-30T00:00:00Z');
  });

  test('nothing after a scheduled cancel [D-60, D-§4]', async ({ env }) => {
    const { clock, ref } = await paidOnClock(env, MAY_10);
    const order = { kind: 'cancel', reason: 'cancelled', atPeriodEnd: true } as const;
    await recordAndLose(env, ref, order, MAY_10);

    await env.advance(clock, '2027-08-01T00:00:00Z');
    expect(await env.state(ref)).toMatchObject({
      status: 'ENDED',
      endReason: 'cancelled',
      cyclesCharged: 1,
    });
    expect((await env.events(ref)).at(-1)).toMatchObject({
      eventType: 'subscription.ended',
      eventTime: Date.parse('2027-06-10T12:00:00Z'),
    });
    expect(await book(env, ref)).toEqual([PAID]);
    await expectNothingFurther(env, ref, clock, '2027-08-01T00:00:00Z');
  });
});

/** Makes the row's next step due `minutes` ago, and the row unchanged since. */
const fallDue = (env: TestEnvironment, { subscriptionId }: SubscriptionRef, minutes: number) =>
  env.db
    .update(subscriptions)
    .set({
      wakeAt: sql`now() - ${minutes} * interval '1 minute'`,
      updatedAt: sql`now() - ${minutes} * interval '1 minute'`,
    })
    .where(eq(subscriptions.id, subscriptionId));

test('in real time, a sweep finds a run that is older than its row a minute after the date that an unpause has set [D-40, D-32]', async ({
  env,
}) => {
  // The commands took place two hours ago, so that their date has passed.
  const createdAt = Date.now() - 3 * HOUR;
  const ref = await env.create({ createdAt, terms: { interval: 'MONTH', cycleCount: 5 } });
  await payCheckout(env, ref);
  await env.execute(ref, { kind: 'pause', commandId: randomUUID() });
  const newNextPaymentAt = Date.now() - 2 * 60_000;
  await recordAndLose(env, ref, { kind: 'unpause', newNextPaymentAt }, Date.now() - 2 * HOUR);
  await fallDue(env, ref, 2);

  expect(await repairsOf(env)).toEqual({ overdue: 1 });
  await expect.poll(() => env.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await book(env, ref)).toEqual([PAID, PAID]);
  expect(await repairsOf(env)).toEqual({});
  expect(await book(env, ref)).toHaveLength(2);
});

test('a look-up that ends after the row has changed returns the row to its run [D-32, D-40]', async ({
  env,
}) => {
  const { clock, ref } = await paidOnClock(env, MAY_10, { cycleCount: 3 });
  await env.gatewayAway('none');
  await env.sendClock(clock, Date.parse('2027-06-10T12:00:00Z'));
  await expect.poll(async () => (await env.state(ref)).openAttempt).toMatchObject({ lookups: 1 });
  const state = await env.state(ref);
  const nowAt = Date.parse('2027-06-10T12:00:00Z');

  const looking = env.activities.chargeAttempt({
    state,
    opening: null,
    nowAt,
    realNowAt: Date.now(),
  });
  await recordAndLose(env, ref, { kind: 'edit', newAmountMinor: 2_500 }, nowAt);
  expect(await looking).toMatchObject({
    kind: 'adopt',
    state: { version: state.version + 1, terms: { amountMinor: 2_500 } },
  });
  await env.gatewayBack();
});

test('a card is not sent to the gateway when the row of its checkout has ended [D-32, D-33]', async ({
  env,
}) => {
  const clock = await env.createClock(MAY_10);
  const trial = { interval: 'DAY', count: 7 } as const;
  const ref = await env.create({ createdAt: MAY_10, testClockId: clock, terms: { trial } });
  await recordAndLose(env, ref, { kind: 'cancel', reason: 'cancelled' }, MAY_10);

  const card = await env.token('4000000000000002');
  expect(await payCheckout(env, ref, card)).toMatchObject({
    kind: 'refused',
    code: 'operation_not_allowed',
  });
  expect((await env.events(ref)).map((event) => event['eventType'])).toEqual([
    'subscription.created',
    'subscription.ended',
  ]);
  expect(await book(env, ref)).toEqual([]);
});
