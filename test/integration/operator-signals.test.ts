import { randomUUID } from 'node:crypto';
import proto from '@temporalio/proto';
import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { stateQuery, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { anyArgument } from '../support/any-json.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { detailsOf } from '../support/workflow-details.ts';
import { unpaidIn } from '../support/unpaid.ts';

const handleOf = ({ client }: TestEnvironment, { subscriptionId }: SubscriptionRef) =>
  client.workflow.getHandle(subscriptionWorkflowId(subscriptionId));

type Handle = ReturnType<typeof handleOf>;

const { WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND: NEW_MESSAGE } =
  proto.temporal.api.enums.v1.WorkflowTaskFailedCause;

/**
 * The number of workflow tasks that failed in our code. A task that the server failed because a new message
 * arrived before the end of the run does not count.
 */
async function failedTasks(handle: Handle): Promise<number> {
  const { events } = await handle.fetchHistory();
  return (events ?? [])
    .map((event) => event.workflowTaskFailedEventAttributes)
    .filter((failed) => failed && failed.cause !== NEW_MESSAGE).length;
}

describe('a signal with an invalid argument', () => {
  test('changes nothing, is shown in the workflow’s details with its reason, and leaves the subscription working [D-32]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const handle = handleOf(env, ref);
    const before = await env.state(ref);
    const events = await env.events(ref);
    await handle.signal('edit', {
      interval: ['MONTH'],
      intervalCount: 1,
      newNextPaymentAt: Date.UTC(2027, 5, 1),
    });
    await expect
      .poll(() => detailsOf(handle))
      .toContain(
        'Refused signal `edit` on 2027-02-10 00:00 UTC: ' +
          'interval must be one of DAY, WEEK, MONTH, YEAR.',
      );
    await handle.signal('unpause', { newNextPaymentAt: Date.UTC(2027, 5, 1) });
    await expect
      .poll(() => detailsOf(handle))
      .toContain(
        'Refused signal `unpause` on 2027-02-10 00:00 UTC: ' +
          'A subscription that is UNPAID cannot be unpaused.',
      );
    await handle.signal('advanceClock', { targetAt: '2027-06-01' });
    await expect
      .poll(() => detailsOf(handle))
      .toContain(
        'Refused signal `advanceClock` on 2027-02-10 00:00 UTC: ' +
          'targetAt must be epoch milliseconds before the year 2200.',
      );
    expect(await env.state(ref)).toEqual(before);
    expect(await handle.query(stateQuery)).toMatchObject(before);

    const edit = { kind: 'edit', commandId: randomUUID(), newAmountMinor: 2_500 } as const;
    expect(await env.execute(ref, edit)).toEqual({
      kind: 'result',
      result: { kind: 'done' },
    });
    expect((await env.state(ref)).terms).toEqual({ ...before.terms, amountMinor: 2_500 });
    expect(await detailsOf(handle)).not.toContain('Refused signal');
    expect(await env.events(ref)).toEqual([
      ...events,
      expect.objectContaining({ eventType: 'subscription.edited', changes: { amount: 2_500 } }),
    ]);
    expect(await failedTasks(handle)).toBe(0);
  });
});

describe('an update with an invalid argument', () => {
  test('is refused, and nothing is recorded [D-32]', async ({ env }) => {
    const { ref } = await unpaidIn(env);
    const handle = handleOf(env, ref);
    const before = await env.state(ref);
    const refused = (name: string, argument: unknown) =>
      handle.executeUpdate(name, { args: [argument] }).then(
        () => 'accepted',
        (error: { cause?: { type?: string; message?: string } }) =>
          `${error.cause?.type}: ${error.cause?.message}`,
      );
    expect(
      await refused('edit', { interval: { toString: 1 }, intervalCount: 0, newAmountMinor: '1' }),
    ).toBe(
      'bad_request: newAmountMinor must be an integer in the smallest currency unit; ' +
        'interval must be one of DAY, WEEK, MONTH, YEAR; ' +
        'intervalCount must be an integer of at least 1',
    );
    expect(await refused('edit', ['newAmountMinor'])).toBe(
      'bad_request: the argument must be a JSON object',
    );
    expect(await env.state(ref)).toEqual(before);
    expect(await failedTasks(handle)).toBe(0);
  });
});

describe('the actor of a change', () => {
  const merchantsTimeline = async (env: TestEnvironment, ref: SubscriptionRef) =>
    (await env.timeline(ref)).slice(-2).map(({ what, why, actor }) => [what, why, actor]);
  const lastEvent = async (env: TestEnvironment, ref: SubscriptionRef) => {
    const { eventType, actor } = (await env.events(ref)).at(-1) ?? {};
    return [eventType, actor];
  };
  const OPERATOR = ['an operator asked for it', 'operator'];
  const MERCHANT = ['the merchant asked for it', 'merchant'];

  test('is the operator for a signal, an update without a command id and a cancellation in the Web UI, and the merchant for a command with an id [D-34]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    const handle = handleOf(env, ref);
    await handle.signal('pause');
    await expect.poll(async () => (await env.state(ref)).status).toBe('PAUSED');
    expect(await merchantsTimeline(env, ref)).toEqual([
      ['cycle 2 declined (card_declined)', 'its date had come (attempt 1)', 'schedule'],
      ['paused', ...OPERATOR],
    ]);
    expect(await lastEvent(env, ref)).toEqual(['subscription.paused', 'operator']);
    expect(await detailsOf(handle)).toContain(
      '| 2027-02-10 00:00 UTC | paused | an operator asked for it |',
    );

    const newNextPaymentAt = Date.UTC(2027, 5, 1);
    const unpause = { kind: 'unpause', commandId: randomUUID(), newNextPaymentAt } as const;
    await env.execute(ref, unpause);
    expect(await lastEvent(env, ref)).toEqual(['subscription.active', 'merchant']);
    await handle.executeUpdate('pause');
    expect(await merchantsTimeline(env, ref)).toEqual([
      ['unpaused, next payment 2027-06-01T00:00:00.000Z', ...MERCHANT],
      ['paused', ...OPERATOR],
    ]);
    await handle.cancel();
    await handle.result();
    expect(await merchantsTimeline(env, ref)).toEqual([
      ['paused', ...OPERATOR],
      ['ended (cancelled)', ...OPERATOR],
    ]);
    expect(await lastEvent(env, ref)).toEqual(['subscription.ended', 'operator']);
  });

  test('is the operator for the outcome of a manual retry that an operator ordered [D-34]', async ({
    env,
  }) => {
    const { ref } = await unpaidIn(env);
    await handleOf(env, ref).signal('manualRetry');
    await expect.poll(async () => (await env.state(ref)).status).toBe('ACTIVE');
    expect(await merchantsTimeline(env, ref)).toEqual([
      ['manual retry accepted', ...OPERATOR],
      ['cycle 2 paid, 19.99 USD', 'an operator asked for a retry (attempt 2)', 'operator'],
    ]);
    const types = (await env.events(ref))
      .slice(-3)
      .map(({ eventType, actor }) => [eventType, actor]);
    expect(types).toEqual([
      ['intent.success', undefined],
      ['subscription.cycle_charged', 'operator'],
      ['subscription.active', 'operator'],
    ]);
  });
});

/** The messages that the test below sends at random. None of them ends the subscription. */
const SIGNALS = [
  'edit',
  'edit',
  'edit',
  'unpause',
  'advanceClock',
  'recheck',
  'pause',
  'manualRetry',
];
const UPDATES = [
  'edit',
  'unpause',
  'pause',
  'manualRetry',
  'completeCheckout',
  'replacePaymentMethod',
];

test('a subscription keeps working after signals and updates with any JSON argument [D-32]', async ({
  env,
}) => {
  const { ref } = await unpaidIn(env);
  const handle = handleOf(env, ref);
  const messages = fc.sample(
    fc.tuple(
      fc.constantFrom(
        ...SIGNALS.map((name) => ['signal', name] as const),
        ...UPDATES.map((name) => ['update', name] as const),
      ),
      anyArgument,
    ),
    { numRuns: 200, seed: 3 },
  );
  for (const [[via, name], argument] of messages) {
    if (via === 'signal') await handle.signal(name, argument);
    else await handle.executeUpdate(name, { args: [argument] }).catch(() => undefined);
  }
  const cancel = { kind: 'cancel', commandId: randomUUID(), reason: 'cancelled' } as const;
  expect(await env.execute(ref, cancel)).toEqual({
    kind: 'result',
    result: { kind: 'done' },
  });
  await handle.result();
  expect(await env.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
  expect(await failedTasks(handle)).toBe(0);
});

test('every other type of workflow keeps working after its signals with any JSON argument', async ({
  env,
}) => {
  const { client, merchantId, taskQueuePrefix } = env;
  const taskQueue = `${taskQueuePrefix}billing`;
  const input = (id: object) => ({ order: { merchantId, token: null, ...id }, lookups: 0 });
  const TOKEN = { paymentToken: 'ptk_none', checkoutSessionId: 'cs_none' };
  // The records of these workflows do not exist, so each workflow waits or ends by itself.
  const runs: [type: string, signals: string[], input: object[]][] = [
    ['payment', ['recheck'], [input({ intentId: 'in_none' })]],
    ['refund', ['recheck'], [input({ refundId: 'rf_none' })]],
    ['setupMethod', ['recheck'], [input({ setupMethodId: 'sm_none', token: TOKEN })]],
    ['lateCharge', ['recheck'], [input({ attemptId: 'att_none' })]],
    ['webhookEndpoint', ['wake', 'breakerClosed'], [{ merchantId, configId: 'whc_none' }]],
    ['gatewaySubject', ['wake'], [{ merchantId, gateway: 'sandbox', subjectId: 'ch_none' }]],
    ['maintenance', ['recheck', 'wake'], []],
  ];
  for (const [type, signals, args] of runs) {
    const workflowId = `${taskQueuePrefix}${type}`;
    for (const [index, argument] of fc.sample(anyArgument, { numRuns: 12, seed: 5 }).entries()) {
      await client.workflow.signalWithStart(type, {
        workflowId,
        taskQueue,
        args,
        signal: signals[index % signals.length]!,
        signalArgs: [argument],
      });
    }
    const handle = client.workflow.getHandle(workflowId);
    // The answer of a query shows that a worker has processed the signals.
    expect(await detailsOf(handle)).toEqual(expect.any(String));
    expect([type, await failedTasks(handle)]).toEqual([type, 0]);
    const { status } = await handle.describe();
    expect(['RUNNING', 'COMPLETED']).toContain(status.name);
    // A run without work may end by itself.
    await handle.terminate('the test is over').catch(() => undefined);
  }
});
