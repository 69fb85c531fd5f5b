import { beforeEach, describe, expect, onTestFinished } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { CommandAnswer } from '../../temporal/subscriptions/workflows.ts';
import { recheck, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { command } from '../support/command.ts';
import { onTimeSkippingServerWith } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { farFromTimers } from '../support/far-from-timers.ts';
import { paidOnClock, payCheckout } from '../support/pay-checkout.ts';
import { lengthenHistory } from '../support/subscriptions.ts';
import type { TimeSkippingEnvironment } from '../support/test-environment.ts';
import { SECRET } from '../support/webhook-environment.ts';
import { startWebhookReceiver } from '../../tools/scripts/client/webhook-receiver.ts';

const DAY = 86_400_000;

/** By activity: the number of calls that fail, and whether each does its work before the failure. */
const faults: Partial<Record<keyof Activities, { times: number; effect: boolean }>> = {};
/** By activity: a function that runs once after the activity's work, before the result is returned. */
const meanwhile: Partial<Record<keyof Activities, () => Promise<void>>> = {};

const test = onTimeSkippingServerWith({ wrap: withFaults });

beforeEach(() => {
  for (const made of [faults, meanwhile]) {
    for (const name of Object.keys(made)) delete made[name as keyof Activities];
  }
});

/** The real activities with failures before or after their work. */
function withFaults(activities: Activities): Activities {
  const entries = Object.entries(activities).map(([name, activity]) => [
    name,
    async (input: never) => {
      const fault = faults[name as keyof Activities];
      const fails = fault !== undefined && fault.times > 0;
      if (fails) fault.times -= 1;
      if (fails && !fault.effect) throw new Error('the connection broke before the work');
      const result = await (activity as (input: never) => Promise<unknown>)(input);
      if (fails) throw new Error('the connection broke after the work');
      const happens = meanwhile[name as keyof Activities];
      delete meanwhile[name as keyof Activities];
      await happens?.();
      return result;
    },
  ]);
  return Object.fromEntries(entries) as Activities;
}

/**
 * Executes a command, and lets the server's time pass until the answer arrives, because the server skips time only in
 * sleeps. The first sleep begins after the run has received the command. An earlier sleep could end the run's next timer
 * while the command arrives; see `startTimeSkippingServer`.
 */
async function executeWhileTimePasses(
  env: TimeSkippingEnvironment,
  ref: SubscriptionRef,
  command: Command,
): Promise<CommandAnswer> {
  const workflowId = subscriptionWorkflowId(ref.subscriptionId);
  const historyOf = async () => {
    const handle = env.client.workflow.getHandle(workflowId);
    const { runId } = await handle.describe();
    const { events } = await handle.fetchHistory();
    return `${runId}: ${events?.length}`;
  };
  await farFromTimers(env, workflowId);
  const before = await historyOf();
  const answer = env.workflows.execute(ref, command);
  const done = answer.then(
    () => true,
    () => true,
  );
  const isAnswered = () => Promise.race([done, Promise.resolve(false)]);
  await eventually(async () => {
    if (!(await isAnswered())) expect(await historyOf()).not.toBe(before);
  });
  for (let slept = 0; slept < DAY; slept += 10_000) {
    if (await isAnswered()) break;
    await env.server.sleep(10_000);
  }
  return answer;
}

async function active(env: TimeSkippingEnvironment) {
  const ref = await env.create({
    createdAt: await env.server.currentTimeMs(),
    terms: { cycleCount: 2 },
  });
  await payCheckout(env, ref);
  return ref;
}

/**
 * Expects that the command answers 503 while the subscription's row cannot be read, and that a repeat succeeds
 * after that.
 */
async function isDoneWhenRowIsReadAgain(
  env: TimeSkippingEnvironment,
  ref: SubscriptionRef,
  command: Command,
): Promise<void> {
  const ask = () => executeWhileTimePasses(env, ref, command);
  await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' });
  faults.loadSubscription = { times: 0, effect: false };
  await env.server.sleep(60_000);
  expect(await ask()).toEqual({ kind: 'result', result: { kind: 'done' } });
}

describe('an activity failure', () => {
  test.for([
    ['before', false],
    ['after', true],
  ] as const)(
    '%s the charge delays the cycle, which is charged once [D-32]',
    async ([, effect], { env }) => {
      const ref = await active(env);
      // There are more failures than attempts, so the workflow sees the failure and tries again after its
      // backoff.
      faults.chargeAttempt = { times: 7, effect };
      await env.server.sleep(31 * DAY + 120_000);
      await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(2);
      // After six attempts, the first as a local activity, the workflow reads the subscription's row again. If
      // the charge is done, the workflow makes no further attempt.
      expect(faults.chargeAttempt.times).toBe(effect ? 1 : 0);
      expect((await env.book(ref)).map((charge) => [charge.outcome, charge.sentCount])).toEqual([
        ['succeeded', 1],
        ['succeeded', 1],
      ]);
      const events = await env.events(ref);
      expect(events.map((event) => event['eventType'])).toEqual([
        'intent.created',
        'subscription.created',
        'intent.success',
        'subscription.cycle_charged',
        'subscription.active',
        'intent.created',
        'intent.success',
        'subscription.cycle_charged',
        'subscription.ended',
      ]);
      await env.server.sleep(400 * DAY);
      expect(await env.events(ref)).toHaveLength(events.length);
    },
  );

  test.for([
    ['before', false],
    ['after', true],
  ] as const)(
    '%s the commit of a command is resolved by a repeat of the command [D-32]',
    async ([, effect], { env }) => {
      const ref = await active(env);
      faults.record = { times: 100, effect };
      const pause = command('pause');
      await executeWhileTimePasses(env, ref, pause).catch((error: unknown) => error);
      faults.record = { times: 0, effect };
      // Longer than the longest backoff, 30 s.
      await env.server.sleep(60_000);
      expect(await executeWhileTimePasses(env, ref, pause)).toEqual({
        kind: 'result',
        result: { kind: 'done' },
      });
      expect((await env.state(ref)).status).toBe('PAUSED');
      const paused = (await env.events(ref)).filter(
        (event) => event['eventType'] === 'subscription.paused',
      );
      expect(paused).toHaveLength(1);
    },
  );

  test('after the commit of an edit does not lose the new date [D-15]', async ({ env }) => {
    const ref = await active(env);
    const now = await env.server.currentTimeMs();
    const newNextPaymentAt = now + 5 * DAY;
    faults.record = { times: 7, effect: true };
    const edit = command('edit', { newNextPaymentAt });
    await executeWhileTimePasses(env, ref, edit).catch((error: unknown) => error);
    await env.server.sleep(5 * DAY);
    await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(2);
    const charged = (await env.events(ref)).filter(
      (event) => event['eventType'] === 'subscription.cycle_charged',
    );
    expect(charged.map((event) => Number(event['eventTime']) - now < 6 * DAY)).toEqual([
      true,
      true,
    ]);
    expect(await env.book(ref)).toHaveLength(2);
  });

  test('after the commit of a pause does not lead to the refusal of a later unpause [D-17]', async ({
    env,
  }) => {
    const ref = await active(env);
    faults.record = { times: 7, effect: true };
    faults.loadSubscription = { times: 1_000, effect: false };
    const pause = command('pause');
    expect(await executeWhileTimePasses(env, ref, pause)).toEqual({
      kind: 'result',
      result: { kind: 'done' },
    });
    const newNextPaymentAt = (await env.server.currentTimeMs()) + 5 * DAY;
    const unpause = command('unpause', { newNextPaymentAt });
    await isDoneWhenRowIsReadAgain(env, ref, unpause);
    expect((await env.state(ref)).status).toBe('ACTIVE');
  });

  test('during the read of the subscription’s row makes a command answer 503, and a later repeat succeeds [D-17]', async ({
    env,
  }) => {
    const ref = await active(env);
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await env.server.sleep(60_000);
    faults.loadSubscription = { times: 1_000, effect: false };
    await handle.signal(recheck);
    const pause = command('pause');
    await isDoneWhenRowIsReadAgain(env, ref, pause);
    expect((await env.state(ref)).status).toBe('PAUSED');
  });

  test('delays an operator’s cancel signal until the database is back [D-§4]', async ({ env }) => {
    const ref = await active(env);
    faults.record = { times: 14, effect: false };
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('cancel');
    await env.server.sleep(300_000);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    expect(faults.record.times).toBe(0);
    await env.server.sleep(400 * DAY);
    expect(await env.book(ref)).toHaveLength(1);
  });

  test('delays an operator’s pause signal until the database is back, also in a run with more than 400 events', async ({
    env,
  }) => {
    const { ref, clock, createdAt } = await paidOnClock(env, await env.server.currentTimeMs());
    faults.record = { times: 14, effect: false };
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('pause');
    await lengthenHistory(handle, createdAt, 450);
    await env.sendClock(clock, createdAt + DAY);
    await env.server.sleep(300_000);
    await expect.poll(async () => (await env.state(ref)).status).toBe('PAUSED');
    expect(faults.record.times).toBe(0);
    await env.advance(clock, createdAt + 60 * DAY);
    expect(await env.book(ref)).toHaveLength(1);
  });

  test('delays the expiry of a checkout and does not prevent it [D-§4]', async ({ env }) => {
    const ref = await env.create({ createdAt: await env.server.currentTimeMs() });
    faults.record = { times: 8, effect: false };
    await env.server.sleep(DAY + 120_000);
    await expect.poll(async () => (await env.state(ref)).status).toBe('ENDED');
    await env.server.sleep(400 * DAY);
    const events = await env.events(ref);
    expect(events.map(({ eventType }) => eventType)).toEqual([
      'intent.created',
      'subscription.created',
      'subscription.ended',
    ]);
    expect(events.at(-1)).toMatchObject({ endReason: 'checkout_expired' });
    expect(await env.book(ref)).toEqual([]);
  });

  test('in the wake-up of webhook delivery does not affect the subscription [D-54]', async ({
    env,
  }) => {
    const receiver = await startWebhookReceiver({ secrets: [SECRET] });
    onTestFinished(receiver.close);
    await env.subscribe(receiver.url, SECRET);
    faults.wakeStream = { times: 1_000, effect: false };
    const ref = await active(env);
    await env.server.sleep(31 * DAY + 120_000);
    await expect.poll(async () => (await env.state(ref)).cyclesCharged).toBe(2);
    expect((await env.state(ref)).status).toBe('ENDED');
    expect(faults.wakeStream.times).toBeLessThan(1_000);
  });

  test('that is repeated is followed by waits that grow to 30 s', async ({ env }) => {
    const ref = await active(env);
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    const { runId } = await handle.describe();
    faults.record = { times: 28, effect: false };
    await handle.signal('pause');
    await env.server.sleep(300_000);
    await expect.poll(async () => (await env.state(ref)).status).toBe('PAUSED');
    const run = env.client.workflow.getHandle(handle.workflowId, runId);
    const { events } = await run.fetchHistory();
    const waits = (events ?? []).flatMap(({ timerStartedEventAttributes: timer, userMetadata }) => {
      const summary = Buffer.from(userMetadata?.summary?.data ?? []).toString();
      return timer && summary === '"try again"' ? [Number(timer.startToFireTimeout?.seconds)] : [];
    });
    // Each of the four failures took seven attempts. A wait is at least half of its limit.
    const limits = [10, 20, 30, 30];
    expect(waits).toHaveLength(4);
    expect(waits.map((s, n) => s >= (limits[n] ?? 0) / 2 && s <= (limits[n] ?? 0))).toEqual(
      limits.map(() => true),
    );
  });

  test('does not fail the workflow when it is permanent, and the workflow still executes commands', async ({
    env,
  }) => {
    const ref = await active(env);
    faults.chargeAttempt = { times: 1_000_000, effect: false };
    const dueAt = Number((await env.events(ref)).at(-1)?.['nextPaymentDate']);
    await env.server.sleep(dueAt - (await env.server.currentTimeMs()) + 600_000);
    const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const cancel = command('cancel', { reason: 'cancelled' });
    await executeWhileTimePasses(env, ref, cancel).catch((error: unknown) => error);
    expect(await executeWhileTimePasses(env, ref, cancel)).toMatchObject({
      kind: 'result',
    });
    expect(await env.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect(await env.book(ref)).toHaveLength(1);
  });
});

test('a recheck signal during a read of the subscription’s row causes a second read', async ({
  env,
}) => {
  const ref = await active(env);
  const handle = env.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await env.server.sleep(60_000);
  const reads: string[] = [];
  meanwhile.loadSubscription = async () => {
    reads.push('first');
    meanwhile.loadSubscription = async () => void reads.push('second');
    await handle.signal(recheck);
  };
  await handle.signal(recheck);
  await expect.poll(() => reads).toEqual(['first', 'second']);
});
