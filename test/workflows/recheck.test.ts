import { eq, sql } from 'drizzle-orm';
import { beforeEach, describe, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { subscriptions } from '../../db/schema/subscriptions.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { orderWorkflowId, recheck as recheckPayment } from '../../workflows/orders/messages.ts';
import {
  recheck as recheckSignal,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import { noteCall } from '../support/call-times.ts';
import { command } from '../support/command.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import type { TestEnvironment, TimeSkippingEnvironment } from '../support/test-environment.ts';

const RECHECKS = 10;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The workflow times, in epoch ms, of the calls of the two charge activities, which ask the gateway. */
const askedAt: number[] = [];
/** The number of reads of the row that still fail. */
let failingReads = 0;

const test = onTimeSkippingServerWith(
  { wrap: withCallLog, sendBudget: { newSendsForMs: 100, pauseMs: 50 } },
  'test',
);

beforeEach(() => {
  askedAt.length = 0;
  failingReads = 0;
});

function withCallLog(activities: Activities): Activities {
  const log = <T>(at: number, ask: () => Promise<T>): Promise<T> => {
    noteCall(askedAt, at);
    return ask();
  };
  return {
    ...activities,
    chargeAttempt: (input) => log(input.realNowAt, () => activities.chargeAttempt(input)),
    chargePayment: (input) => log(input.nowAt, () => activities.chargePayment(input)),
    loadSubscription: async (input) => {
      if (failingReads === 0) return activities.loadSubscription(input);
      failingReads -= 1;
      throw new Error('the database is away');
    },
  };
}

/** Number of calls after which the next look-up follows 280 to 290 s later: the send and four look-ups. */
const CALLS = 5;

/** Seconds from the last scheduled call before `rechecks` rechecks to the next scheduled call. */
const delayOver = (rechecks: number) =>
  ((askedAt[CALLS + rechecks] ?? Number.NaN) - (askedAt[CALLS - 1] ?? 0)) / 1_000;

/** Expects a scheduled delay, with a margin for a busy machine. */
function expectScheduled(delay: number): void {
  expect(delay).toBeGreaterThanOrEqual(280);
  expect(delay).toBeLessThanOrEqual(300);
}

const recheck = (env: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId)).signal(recheckSignal);

/** Sleeps until the calls after which the next look-up follows 280 to 290 s later. */
async function untilRegular(env: TimeSkippingEnvironment): Promise<void> {
  for (let step = 0; step < 45 && askedAt.length < CALLS; step += 1) await env.server.sleep(10_000);
  await expect.poll(() => askedAt).toHaveLength(CALLS);
}

/**
 * Creates a subscription of two daily cycles. The outcome of the second charge is unknown, and the next
 * look-up follows after 280 to 290 s.
 */
async function undecided(env: TimeSkippingEnvironment, testClockId: string | null = null) {
  const createdAt = await env.server.currentTimeMs();
  const ref = await env.create({
    createdAt,
    testClockId,
    terms: { cycleCount: 2, interval: 'DAY' },
  });
  await payCheckout(env, ref);
  await env.gatewayAway();
  askedAt.length = 0;
  if (testClockId === null) await env.server.sleep(DAY + 1_000);
  else await env.sendClock(testClockId, createdAt + DAY);
  await expect.poll(() => askedAt).not.toEqual([]);
  await untilRegular(env);
  await expect.poll(async () => (await env.state(ref)).openAttempt?.lookups).toBe(CALLS);
  return ref;
}

const outcomes = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.book(ref)).map(({ outcome, sentCount }) => `${outcome} x${sentCount}`);

const PAID_TWICE = [
  'intent.created',
  'subscription.created',
  'intent.success',
  'subscription.cycle_charged',
  'subscription.active',
  'intent.created',
  'intent.success',
  'subscription.cycle_charged',
  'subscription.ended',
];

const types = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.events(ref)).map((event) => event['eventType']);

describe('a recheck signal to a subscription', () => {
  test('asks the gateway at once about a charge of unknown outcome [D-40]', async ({ env }) => {
    const ref = await undecided(env);
    await env.gatewayBack();
    await recheck(env, ref);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect(askedAt).toHaveLength(CALLS + 1);
    expect(delayOver(0)).toBeLessThan(280);
    expect(await outcomes(env, ref)).toEqual(['succeeded x1', 'succeeded x1']);
    expect(await types(env, ref)).toEqual(PAID_TWICE);
    await env.server.sleep(3 * DAY);
    expect(askedAt).toHaveLength(CALLS + 1);
    expect(await types(env, ref)).toEqual(PAID_TWICE);
  });

  test('asks the gateway at once when the subscription is on a test clock [D-40, D-60]', async ({
    env,
  }) => {
    const clock = await env.createClock(await env.server.currentTimeMs());
    const ref = await undecided(env, clock);
    await env.gatewayBack();
    await recheck(env, ref);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect(askedAt).toHaveLength(CALLS + 1);
    expect(await outcomes(env, ref)).toEqual(['succeeded x1', 'succeeded x1']);
    expect(await types(env, ref)).toEqual(PAID_TWICE);
  });

  test('leaves the schedule of the look-ups unchanged while the gateway does not answer [D-40]', async ({
    env,
  }) => {
    const ref = await undecided(env);
    const before = (await env.state(ref)).openAttempt;
    for (let signals = 1; signals <= RECHECKS; signals += 1) {
      await recheck(env, ref);
      await expect.poll(() => askedAt).toHaveLength(CALLS + signals);
    }
    expect((await env.state(ref)).openAttempt).toEqual(before);
    await env.server.sleep(5 * MINUTE);
    await expect.poll(() => askedAt).toHaveLength(CALLS + RECHECKS + 1);
    expectScheduled(delayOver(RECHECKS));
    await env.gatewayBack();
    await env.server.sleep(5 * MINUTE);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect(askedAt).toHaveLength(CALLS + RECHECKS + 2);
    expect(await types(env, ref)).toEqual(PAID_TWICE);
  });

  test('asks the gateway at once also when the run continues as new before it can read its row [D-40]', async ({
    env,
  }) => {
    const ref = await undecided(env);
    await env.gatewayBack();
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    const { runId } = await handle.describe();
    failingReads = 7;
    await recheck(env, ref);
    await expect.poll(() => failingReads).toBeLessThan(7);
    await lengthenHistory(handle, 0, 450);
    await env.server.sleep(2 * MINUTE);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect((await handle.describe()).runId).not.toBe(runId);
    expect(askedAt).toHaveLength(CALLS + 1);
    expect(delayOver(0)).toBeLessThan(280);
    expect(await types(env, ref)).toEqual(PAID_TWICE);
  });

  test('adopts a row of its own version that differs, as after a release with other rules [D-32]', async ({
    env,
  }) => {
    const createdAt = await env.server.currentTimeMs();
    const ref = await env.create({ createdAt, terms: { cycleCount: 2, interval: 'DAY' } });
    await payCheckout(env, ref);
    const { terms } = await env.state(ref);
    const changed = { terms: { ...terms, amountMinor: 2_500 } };
    await env.db
      .update(subscriptions)
      .set({ state: sql`state::jsonb || ${sql.param(changed)}::jsonb` })
      .where(eq(subscriptions.id, ref.subscriptionId));
    await recheck(env, ref);
    await env.server.sleep(DAY + 1_000);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect((await env.book(ref)).map(({ amountMinor }) => amountMinor)).toEqual([1_999, 2_500]);
    await env.server.sleep(3 * DAY);
    expect(await types(env, ref)).toEqual(PAID_TWICE);
  });

  test('makes no request when no outcome is unknown', async ({ env }) => {
    const ref = await env.create({ createdAt: await env.server.currentTimeMs() });
    await payCheckout(env, ref);
    askedAt.length = 0;
    await recheck(env, ref);
    await env.server.sleep(HOUR);
    expect(askedAt).toEqual([]);
    const edit = command('edit', { newAmountMinor: 2_500 });
    expect(await env.workflows.execute(ref, edit)).toMatchObject({ kind: 'result' });
  });
});

describe('a recheck signal to a payment', () => {
  test('leaves the schedule of the look-ups unchanged while the gateway does not answer [D-40]', async ({
    env,
    payments,
  }) => {
    const ref = await payments.tokenised();
    await env.gatewayAway();
    const handle = await env.client.workflow.start('payment', {
      workflowId: orderWorkflowId('payment', ref.intentId),
      taskQueue: `${env.taskQueuePrefix}billing`,
      args: [{ order: { ...ref, token: null }, lookups: 0 }],
    });
    await untilRegular(env);
    for (let signals = 1; signals <= RECHECKS; signals += 1) {
      await handle.signal(recheckPayment);
      await expect.poll(() => askedAt).toHaveLength(CALLS + signals);
    }
    expect(await payments.attempts(ref)).toEqual(['1 UNKNOWN']);
    await env.server.sleep(5 * MINUTE);
    await expect.poll(() => askedAt).toHaveLength(CALLS + RECHECKS + 1);
    expectScheduled(delayOver(RECHECKS));
    await env.gatewayBack();
    await handle.signal(recheckPayment);
    expect(await handle.result()).toMatchObject({ outcome: { kind: 'succeeded' } });
    expect(askedAt).toHaveLength(CALLS + RECHECKS + 2);
    expect(await payments.book(ref)).toEqual(['succeeded 5000 x1']);
    expect(await payments.story(ref.intentId)).toEqual([
      'intent.created CREATED',
      'intent.success SUCCESS',
    ]);
  });
});
