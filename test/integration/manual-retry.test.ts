import { randomUUID } from 'node:crypto';
import { activityInfo } from '@temporalio/activity';
import { describe, expect, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import type { Shop } from '../support/shop.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import type { TestEnvironment } from '../support/test-environment.ts';

/** Manual retries over HTTP, on a real Temporal server, checked against the gateway's charges. */

/** Runs after each `chargeAttempt` that is not a local activity, before the workflow gets the outcome. */
let afterQueuedCharge: () => Promise<unknown> = async () => undefined;

const observed = (activities: Activities): Activities => ({
  ...activities,
  chargeAttempt: async (input) => {
    const outcome = await activities.chargeAttempt(input);
    if (!activityInfo().isLocal) await afterQueuedCharge();
    return outcome;
  },
});
const test = onDevServerWith({ wrap: observed });
test.afterEach(() => {
  afterQueuedCharge = async () => undefined;
});

/**
 * Creates a subscription that is UNPAID since 2027-02-10T00:00Z. The gateway declines `declines` charges in a
 * row, beginning with the charge of that day.
 */
async function unpaid(
  env: TestEnvironment,
  shop: Shop,
  code: string,
  declines: number,
  cycleCount = 3,
) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await env.createClock(createdAt);
  const ref = await env.create({ createdAt, testClockId: clock, terms: { cycleCount } });
  await payCheckout(env, ref);
  const { subscriptionId } = ref;
  await env.control('POST', '/control/declines', { subscriptionId, code, count: declines });
  await env.advance(clock, '2027-02-10T00:00:00Z');
  expect((await env.state(ref)).status).toBe('UNPAID');
  return {
    ref,
    retry: (key?: string) =>
      shop.merchant.post<object>('/subscription/manual-retry', { subscriptionId }, key),
    goTo: (time: string) => env.advance(clock, `2027-02-10T${time}Z`),
    outcomes: async () => (await env.book(ref)).map(({ outcome }) => outcome),
  };
}

const refusal = (errorCode: string, description: string) => ({
  status: 400,
  errorCode,
  message: expect.stringMatching(new RegExp(`: ${description}$`)) as string,
});
const cooldownUntil = (time: string) =>
  refusal('bad_request', `Another manual retry is possible from 2027-02-10T${time}Z\\.`);
const declinedUntil = (time: string, errorCode: string) => ({
  success: false,
  minManualRetryDate: `2027-02-10T${time}Z`,
  status: 'UNPAID',
  errorCode,
  errorMessage: expect.any(String) as string,
});

describe('a manual retry', () => {
  test('is refused until 4 h after the last one, also when workers restart [IF-4.9, D-31, IF-3, IF-8, D-60]', async ({
    env,
    shop,
  }) => {
    // stolen_card is a hard decline, so there are no automatic retries between the manual retries.
    const subscription = await unpaid(env, shop, 'stolen_card', 3);
    expect(await subscription.retry()).toEqual(declinedUntil('04:00:00.000', 'stolen_card'));
    await expect(subscription.retry()).rejects.toMatchObject(cooldownUntil('04:00:00.000'));
    await env.stopWorkers();
    await env.startWorkers();
    await subscription.goTo('03:59:00');
    await expect(subscription.retry()).rejects.toMatchObject(cooldownUntil('04:00:00.000'));
    await subscription.goTo('03:59:59.999');
    await expect(subscription.retry()).rejects.toMatchObject(cooldownUntil('04:00:00.000'));
    await subscription.goTo('04:00:00');
    expect(await subscription.retry()).toEqual(declinedUntil('08:00:00.000', 'stolen_card'));
    expect(await subscription.outcomes()).toEqual([
      'succeeded',
      'declined',
      'declined',
      'declined',
    ]);
  });

  test('keeps its cooldown when an automatic retry is made during it [D-31, D-30]', async ({
    env,
    shop,
  }) => {
    const subscription = await unpaid(env, shop, 'card_declined', 3);
    await subscription.goTo('02:00:00');
    expect(await subscription.retry()).toEqual(declinedUntil('06:00:00.000', 'card_declined'));
    await subscription.goTo('05:59:00');
    // The automatic retry of 04:00 was made; the next automatic retry is 8 h later.
    expect(await subscription.outcomes()).toEqual([
      'succeeded',
      'declined',
      'declined',
      'declined',
    ]);
    expect((await env.state(subscription.ref)).owed?.nextRetryAt).toBe(
      Date.parse('2027-02-10T12:00:00Z'),
    );
    await expect(subscription.retry()).rejects.toMatchObject(cooldownUntil('06:00:00.000'));
    await subscription.goTo('06:00:00');
    expect(await subscription.retry()).toEqual({
      success: true,
      minManualRetryDate: '2027-02-10T10:00:00.000Z',
      status: 'ACTIVE',
      errorCode: null,
      errorMessage: null,
    });
    expect(await subscription.outcomes()).toHaveLength(5);
  });
});

interface Faults {
  faults: { fault: string }[];
}

/** True if the subscription's present run has accepted a command after its first recheck. */
async function hasAcceptedSinceRecheck(env: TestEnvironment, ref: SubscriptionRef) {
  const run = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  const { events } = await run.fetchHistory();
  const recheckAt = events?.findIndex(
    (event) => event.workflowExecutionSignaledEventAttributes?.signalName === 'recheck',
  );
  const acceptedAt = events?.findLastIndex((event) =>
    Boolean(event.workflowExecutionUpdateAcceptedEventAttributes),
  );
  return (acceptedAt ?? -1) > (recheckAt ?? 0);
}

/**
 * Creates an UNPAID subscription whose manual retry has an unknown outcome, and sends a second manual retry while
 * an activity of the workflow looks the outcome up. The look-ups of this activity fail.
 */
async function retriedDuringLookUp(env: TestEnvironment, shop: Shop, cycleCount: number) {
  const subscription = await unpaid(env, shop, 'stolen_card', 1, cycleCount);
  const { ref, retry } = subscription;
  const order = (fault: object) => env.control('POST', '/control/faults', fault);
  await order({ operation: 'charge', fault: 'lose_answer', effect: 'none', count: 1_000 });
  await order({ operation: 'lookup', fault: 'error_500', count: 1_000 });
  const pending = { status: 400, errorCode: 'payment_outcome_pending' };
  await expect(retry()).rejects.toMatchObject(pending);
  await env.control('DELETE', '/control/faults');
  // The first look-up takes longer than a local activity may take. The next ones fail.
  await order({ operation: 'lookup', fault: 'delay', delayMs: 60_000, count: 1 });
  await order({ operation: 'lookup', fault: 'error_500', count: 1_000 });
  // The look-ups on the queue do not end before the second manual retry waits for them.
  afterQueuedCharge = () =>
    eventually(async () => expect(await hasAcceptedSinceRecheck(env, ref)).toBe(true));
  await env.workflows.recheck(ref);
  const faults = () => env.control('GET', '/control/faults') as unknown as Promise<Faults>;
  await expect
    .poll(async () => (await faults()).faults.map(({ fault }) => fault))
    .toEqual(['error_500']);
  const key = randomUUID();
  // The run looks the charge up, so its validator accepts the second retry, which waits.
  const repeat = () => retry(key).catch((error: { errorCode: string }) => error.errorCode);
  return { ...subscription, answer: repeat(), repeat };
}

describe('a manual retry that waited for a charge of unknown outcome', () => {
  test.for([
    ['is known', 3, 'ACTIVE'],
    ['has ended the subscription', 2, 'ENDED'],
  ] as const)(
    'is refused as pending, and is validated anew when it is repeated with its key after the outcome %s [D-31, D-17]',
    async ([, cycleCount, status], { env, shop }) => {
      const retried = await retriedDuringLookUp(env, shop, cycleCount);
      expect(await retried.answer).toBe('payment_outcome_pending');
      await env.control('DELETE', '/control/faults');
      await env.workflows.recheck(retried.ref);
      await expect.poll(async () => (await env.state(retried.ref)).status).toBe(status);
      await expect.poll(retried.repeat).toBe('operation_not_allowed');
      expect(await retried.outcomes()).toEqual(['succeeded', 'declined', 'succeeded']);
    },
  );
});

describe('five concurrent manual retries with different keys', () => {
  test.for([
    ['the charge is declined', 10, { success: false, status: 'UNPAID' }],
    ['the charge succeeds', 1, { success: true, status: 'ACTIVE' }],
  ] as const)(
    'make one attempt when %s [D-31, D-32]',
    async ([, declines, outcome], { env, shop }) => {
      const subscription = await unpaid(env, shop, 'card_declined', declines);
      const answers = await Promise.allSettled(
        Array.from({ length: 5 }, () => subscription.retry()),
      );
      const done = answers.filter((answer) => answer.status === 'fulfilled');
      expect(done.map(({ value }) => value)).toEqual([expect.objectContaining(outcome)]);
      const refused = answers.filter((answer) => answer.status === 'rejected');
      expect(refused.map(({ reason }) => (reason as { status: number }).status)).toEqual([
        400, 400, 400, 400,
      ]);
      expect(await subscription.outcomes()).toHaveLength(3);
    },
  );
});

describe('the answer to a manual retry', () => {
  test('is payment_outcome_pending for the same and for another key until the outcome is known [D-31, D-17]', async ({
    env,
    shop,
  }) => {
    const subscription = await unpaid(env, shop, 'card_declined', 1);
    const match = { subscriptionId: subscription.ref.subscriptionId };
    const lose = { operation: 'charge', fault: 'lose_answer', count: 1_000, match };
    await env.control('POST', '/control/faults', lose);
    const failingLookup = { operation: 'lookup', fault: 'error_500', count: 1_000, match: {} };
    await env.control('POST', '/control/faults', failingLookup);
    await expect(subscription.retry('undecided')).rejects.toMatchObject({
      status: 400,
      errorCode: 'payment_outcome_pending',
    });
    await expect(subscription.retry('another')).rejects.toMatchObject({
      status: 400,
      errorCode: 'payment_outcome_pending',
    });
    await env.control('DELETE', '/control/faults');
    const late = await vi.waitFor(() => subscription.retry('undecided'), {
      timeout: 60_000,
      interval: 250,
    });
    expect(late).toEqual({
      success: true,
      minManualRetryDate: '2027-02-10T04:00:00.000Z',
      status: 'ACTIVE',
      errorCode: null,
      errorMessage: null,
    });
    expect(await subscription.outcomes()).toEqual(['succeeded', 'declined', 'succeeded']);
  });
});
