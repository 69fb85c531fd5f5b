import { describe, expect } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { command } from '../support/command.ts';
import { onTimeSkippingServer as test } from '../support/environment.ts';
import { newMethodCommand } from '../support/card-tokens.ts';
import { payCheckout } from '../support/pay-checkout.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import type { NewSubscription } from '../support/subscriptions.ts';
import type { TimeSkippingEnvironment, TestEnvironment } from '../support/test-environment.ts';

const DAY = 86_400_000;

async function subscribe(
  env: TimeSkippingEnvironment,
  options: Omit<NewSubscription, 'createdAt'> = {},
): Promise<SubscriptionRef> {
  const ref = await env.create({ ...options, createdAt: await env.server.currentTimeMs() });
  const answer = await payCheckout(env, ref);
  expect(answer.kind).toBe('result');
  return ref;
}

const paid = async (env: TestEnvironment, ref: SubscriptionRef) =>
  (await env.state(ref)).cyclesCharged;

/** Sleeps for `ms` and expects exactly `cycles` paid cycles. */
async function sleepUntilPaid(
  env: TimeSkippingEnvironment,
  ref: SubscriptionRef,
  ms: number,
  cycles: number,
): Promise<void> {
  await env.server.sleep(ms);
  await expect.poll(() => paid(env, ref)).toBe(cycles);
}

/** The number of history events of each run, the first one first. */
async function historyLengths(env: TestEnvironment, ref: SubscriptionRef): Promise<number[]> {
  const id = subscriptionWorkflowId(ref.subscriptionId);
  const eventsOf = async (runId?: string) =>
    (await env.client.workflow.getHandle(id, runId).fetchHistory()).events ?? [];
  const [started] = await eventsOf();
  const lengths: number[] = [];
  let runId = started?.workflowExecutionStartedEventAttributes?.firstExecutionRunId;
  while (runId) {
    const events = await eventsOf(runId);
    lengths.push(events.length);
    runId = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return lengths;
}

async function expectNothingFurther(
  env: TimeSkippingEnvironment,
  ref: SubscriptionRef,
): Promise<void> {
  const before = [(await env.events(ref)).length, (await env.book(ref)).length];
  await env.server.sleep(400 * DAY);
  expect([(await env.events(ref)).length, (await env.book(ref)).length]).toEqual(before);
}

describe('a subscription in Temporal', () => {
  test('is charged 36 times, one cycle after the other, over 36 months, in runs with at most 70 events [D-§4]', async ({
    env,
  }) => {
    const ref = await subscribe(env, { terms: { cycleCount: 36, amountMinor: 500 } });
    for (let cycles = 2; cycles <= 36; cycles += 1)
      await sleepUntilPaid(env, ref, 31 * DAY, cycles);
    const book = await env.book(ref);
    expect(book.map((charge) => [charge.amountMinor, charge.outcome, charge.sentCount])).toEqual(
      Array.from({ length: 36 }, () => [500, 'succeeded', 1]),
    );
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'completed' });
    const lengths = await historyLengths(env, ref);
    expect(Math.max(...lengths)).toBeLessThanOrEqual(70);
    // Each has six to ten renewals.
    expect(lengths.length).toBeGreaterThanOrEqual(4);
    expect(lengths.length).toBeLessThanOrEqual(5);
    await expectNothingFurther(env, ref);
  });

  test('continues at the end of a pause with a date; ends with its period after a cancel at the period end [D-§4]', async ({
    env,
  }) => {
    const ref = await subscribe(env, { terms: { cycleCount: 5 } });
    const before = (await env.events(ref)).length;
    const resumeAt = (await env.server.currentTimeMs()) + 70 * DAY;
    await env.workflows.execute(ref, command('pause', { resumeAt }));
    await sleepUntilPaid(env, ref, 71 * DAY, 2);
    const cancel = command('cancel', { reason: 'cancelled', atPeriodEnd: true });
    await env.workflows.execute(ref, cancel);
    const { currentPeriodEndAt } = await env.state(ref);
    await env.server.sleep(31 * DAY);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    const told = (await env.events(ref)).slice(before);
    expect(told.map(({ eventType }) => eventType)).toEqual([
      'subscription.paused',
      'subscription.active',
      'intent.created',
      'intent.success',
      'subscription.cycle_charged',
      'subscription.cancel_scheduled',
      'subscription.ended',
    ]);
    // The server's clock runs in real time while work is in progress, so an event is some ms after its date.
    const tensOfSeconds = (from: unknown, to: unknown) =>
      Math.floor((Number(to) - Number(from)) / 10_000);
    expect(tensOfSeconds(resumeAt, told[1]?.['eventTime'])).toBe(0);
    expect(tensOfSeconds(currentPeriodEndAt, told[6]?.['eventTime'])).toBe(0);
    await expectNothingFurther(env, ref);
  });

  test('keeps the cooldown of a manual retry over continue-as-new and an automatic retry [D-31]', async ({
    env,
  }) => {
    // The interval is 31 days, because the length of a month depends on the date of the test.
    const terms = { cycleCount: 2, interval: 'DAY', intervalCount: 31 } as const;
    const ref = await subscribe(env, { terms });
    const { subscriptionId } = ref;
    await env.control('POST', '/control/declines', {
      subscriptionId,
      code: 'card_declined',
      count: 4,
    });
    await env.server.sleep(31 * DAY + 3_600_000);
    await expect.poll(async () => (await env.state(ref)).status).toBe('UNPAID');
    const retry = (n: number) =>
      env.workflows.execute(ref, {
        kind: 'manualRetry',
        commandId: `${subscriptionId}:retry:${n}`,
      });
    const first = await retry(1);
    expect(first).toMatchObject({ kind: 'result', result: { success: false, status: 'UNPAID' } });
    const until =
      first.kind === 'result' && first.result.kind === 'manualRetry'
        ? first.result.minManualRetryAt
        : null;
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));
    const { runId } = await handle.describe();
    const { entries } = await handle.query(stateQuery);
    expect(entries.map(({ kind }) => kind)).toEqual([
      'created',
      'paid',
      'declined',
      'manual_retry',
      'declined',
    ]);
    await lengthenHistory(handle, 0, 400);
    await env.server.sleep(60_000);
    expect((await handle.describe()).runId).not.toBe(runId);
    // The server's clock also runs in real time, so the sleep ends a minute before the end of the cooldown.
    await env.server.sleep(Number(until) - 60_000 - (await env.server.currentTimeMs()));
    expect(await retry(2)).toEqual({
      kind: 'refused',
      code: 'bad_request',
      message: `Another manual retry is possible from ${new Date(until ?? 0).toISOString()}.`,
      retryAt: Number(until),
    });
    // The timer of the cooldown ends a minute before the retry; see `startTimeSkippingServer`.
    await env.server.sleep(120_000);
    expect(await retry(3)).toMatchObject({ kind: 'result', result: { success: false } });
    // The charges: checkout, due date, manual retry, automatic retry 4 h after the due date, manual retry.
    expect((await env.book(ref)).map((charge) => charge.outcome)).toEqual([
      'succeeded',
      'declined',
      'declined',
      'declined',
      'declined',
    ]);
    expect(await env.workflows.execute(ref, newMethodCommand(await env.token()))).toMatchObject({
      result: { outcome: 'paid' },
    });
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', cyclesCharged: 2 });
    await expectNothingFurther(env, ref);
  });
});
