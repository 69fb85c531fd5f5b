import { randomUUID } from 'node:crypto';
import { activityInfo } from '@temporalio/activity';
import { describe, expect } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onDevServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import type { Shop } from '../support/shop.ts';
import { paidOnClock } from '../support/pay-checkout.ts';
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
  const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z', { cycleCount });
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

  test('waits for a look-up that finds its charge [D-31]', async ({ env, shop }) => {
    const { ref, retry, outcomes } = await unpaid(env, shop, 'card_declined', 1);
    await env.gatewayAway();
    const answer = retry();
    await eventually(async () => expect((await env.state(ref)).openAttempt?.lookups).toBe(1));
    await env.gatewayBack();
    expect(await answer).toMatchObject({ success: true, status: 'ACTIVE', errorCode: null });
    expect(await outcomes()).toEqual(['succeeded', 'declined', 'succeeded']);
  });
});

interface Faults {
  faults: { fault: string; hits: number }[];
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
async function retriedDuringLookUp(env: TestEnvironment, shop: Shop) {
  const subscription = await unpaid(env, shop, 'stolen_card', 1, 2);
  const { ref, retry } = subscription;
  await env.gatewayAway('none');
  const pending = { status: 400, errorCode: 'payment_outcome_pending' };
  await expect(retry()).rejects.toMatchObject(pending);
  await env.gatewayBack();
  const order = (fault: object) => env.control('POST', '/control/faults', fault);
  // The first look-up takes longer than a local activity may take. The next ones fail.
  await order({ operation: 'lookup', fault: 'delay', delayMs: 60_000, count: 1 });
  await order({ operation: 'lookup', fault: 'error_500', count: 1_000 });
  // The look-ups on the queue do not end before the second manual retry waits for them.
  afterQueuedCharge = () =>
    eventually(async () => expect(await hasAcceptedSinceRecheck(env, ref)).toBe(true));
  await env.workflows.recheck(ref);
  const faults = () => env.control('GET', '/control/faults') as unknown as Promise<Faults>;
  await expect
    .poll(async () => (await faults()).faults.find(({ fault }) => fault === 'delay')?.hits)
    .toBe(1);
  const key = randomUUID();
  // The run looks the charge up, so its validator accepts the second retry, which waits.
  const repeat = () => retry(key).catch((error: { errorCode: string }) => error.errorCode);
  return { ...subscription, answer: repeat(), repeat };
}

test('a manual retry that waited for a charge of unknown outcome is refused as pending, and is validated anew when it is repeated with its key after the outcome has ended the subscription [D-31, D-17]', async ({
  env,
  shop,
}) => {
  const retried = await retriedDuringLookUp(env, shop);
  expect(await retried.answer).toBe('payment_outcome_pending');
  await env.gatewayBack();
  await env.workflows.recheck(retried.ref);
  await expect.poll(async () => (await env.state(retried.ref)).status).toBe('ENDED');
  await expect.poll(retried.repeat).toBe('operation_not_allowed');
  expect(await retried.outcomes()).toEqual(['succeeded', 'declined', 'succeeded']);
});
