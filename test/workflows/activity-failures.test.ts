import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { deleteWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { poke, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { lengthenHistory } from '../support/lives.ts';
import { startTimeSkippingServer } from '../support/temporal-servers.ts';
import { createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';

const DAY = 86_400_000;

let env: TestWorkflowEnvironment;
let world: World;

/** How often each activity fails, and whether it does its work before the failure. */
const faults: Partial<Record<keyof Activities, { times: number; effect: boolean }>> = {};
/** Runs once after the work of an activity, before its result is returned. */
const meanwhile: Partial<Record<keyof Activities, () => Promise<void>>> = {};

beforeAll(async () => {
  env = await startTimeSkippingServer();
  world = await createWorld(env, { wrap: withFaults });
});

afterAll(async () => {
  await world.close();
  await env.teardown();
});

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

/** Sleeps in steps of 10 s until the answer is there, because the server skips time only in sleeps. */
async function whileTimePasses<T>(answer: Promise<T>): Promise<T> {
  const isAnswered = answer.then(
    () => true,
    () => true,
  );
  for (let slept = 0; slept < DAY; slept += 10_000) {
    if (await Promise.race([isAnswered, Promise.resolve(false)])) break;
    await env.sleep(10_000);
  }
  return answer;
}

async function active() {
  const ref = await world.create({
    createdAt: await env.currentTimeMs(),
    terms: { cycleCount: 2 },
  });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  return ref;
}

/** The command answers 503 while the row cannot be read. A repeat succeeds after that. */
async function isDoneWhenRowIsReadAgain(ref: SubscriptionRef, command: Command): Promise<void> {
  const ask = () => whileTimePasses(world.workflows.execute(ref, command));
  await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' });
  faults.loadSubscription = { times: 0, effect: false };
  await env.sleep(60_000);
  expect(await ask()).toEqual({ kind: 'result', result: { kind: 'done' } });
}

describe('a lasting activity failure', () => {
  test.each([
    ['before', false],
    ['after', true],
  ])('%s the charge delays the cycle, which is charged once [D-32]', async (_, effect) => {
    const ref = await active();
    // More failures than attempts: the workflow sees the failure and tries again after its backoff.
    faults.chargeAttempt = { times: 7, effect };
    await env.sleep(31 * DAY + 120_000);
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), 30_000);
    // After six attempts, the first as a local activity, the workflow reads the row again. If the
    // charge is done, it makes no further attempt.
    expect(faults.chargeAttempt.times).toBe(effect ? 1 : 0);
    expect((await world.book(ref)).map((charge) => [charge.outcome, charge.sentCount])).toEqual([
      ['succeeded', 1],
      ['succeeded', 1],
    ]);
    const events = await world.events(ref);
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
    await env.sleep(400 * DAY);
    expect(await world.events(ref)).toHaveLength(events.length);
  });

  test.each([
    ['before', false],
    ['after', true],
  ])(
    '%s the commit of a command is resolved by a repeat of the command [D-32]',
    async (_, effect) => {
      const ref = await active();
      faults.record = { times: 100, effect };
      const pause = { kind: 'pause', commandId: `pause:${ref.subscriptionId}` } as const;
      await whileTimePasses(world.workflows.execute(ref, pause).catch((error: unknown) => error));
      faults.record = { times: 0, effect };
      // Longer than the backoff before the last failing attempt.
      await env.sleep(60_000);
      expect(await whileTimePasses(world.workflows.execute(ref, pause))).toEqual({
        kind: 'result',
        result: { kind: 'done' },
      });
      expect((await world.state(ref)).status).toBe('PAUSED');
      const paused = (await world.events(ref)).filter(
        (event) => event['eventType'] === 'subscription.paused',
      );
      expect(paused).toHaveLength(1);
    },
  );

  test('after the commit of an edit does not lose the new date [D-15]', async () => {
    const ref = await active();
    const now = await env.currentTimeMs();
    const newNextPaymentAt = now + 5 * DAY;
    faults.record = { times: 7, effect: true };
    const edit = {
      kind: 'edit',
      commandId: `edit:${ref.subscriptionId}`,
      newNextPaymentAt,
    } as const;
    await whileTimePasses(world.workflows.execute(ref, edit).catch((error: unknown) => error));
    await env.sleep(5 * DAY);
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), 30_000);
    const charged = (await world.events(ref)).filter(
      (event) => event['eventType'] === 'subscription.cycle_charged',
    );
    expect(charged.map((event) => Number(event['eventTime']) - now < 6 * DAY)).toEqual([
      true,
      true,
    ]);
    expect(await world.book(ref)).toHaveLength(2);
  });

  test('after the commit of a pause does not refuse a later unpause [D-17]', async () => {
    const ref = await active();
    faults.record = { times: 7, effect: true };
    faults.loadSubscription = { times: 1_000, effect: false };
    const pause = { kind: 'pause', commandId: `pause:${ref.subscriptionId}` } as const;
    expect(await whileTimePasses(world.workflows.execute(ref, pause))).toEqual({
      kind: 'result',
      result: { kind: 'done' },
    });
    const unpause = {
      kind: 'unpause',
      commandId: `unpause:${ref.subscriptionId}`,
      newNextPaymentAt: (await env.currentTimeMs()) + 5 * DAY,
    } as const;
    await isDoneWhenRowIsReadAgain(ref, unpause);
    expect((await world.state(ref)).status).toBe('ACTIVE');
  });

  test('during the read of the row lets a repeat of the command succeed later [D-17]', async () => {
    const ref = await active();
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await env.sleep(60_000);
    faults.loadSubscription = { times: 1_000, effect: false };
    await handle.signal(poke);
    const pause = { kind: 'pause', commandId: `pause:${ref.subscriptionId}` } as const;
    await isDoneWhenRowIsReadAgain(ref, pause);
    expect((await world.state(ref)).status).toBe('PAUSED');
  });

  test('delays an operator’s cancel signal until the database is back [D-§4]', async () => {
    const ref = await active();
    faults.record = { times: 14, effect: false };
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('cancel');
    await env.sleep(300_000);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('ENDED'), 30_000);
    expect(faults.record.times).toBe(0);
    await env.sleep(400 * DAY);
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('delays an operator’s pause signal in a full run until the database is back', async () => {
    const createdAt = await env.currentTimeMs();
    const clock = await world.createClock(createdAt);
    const ref = await world.create({ createdAt, testClockId: clock });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    faults.record = { times: 14, effect: false };
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('pause');
    await lengthenHistory(handle, createdAt, 450);
    await world.sendClock(clock, createdAt + DAY);
    await env.sleep(300_000);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('PAUSED'), 30_000);
    expect(faults.record.times).toBe(0);
    await world.advance(clock, createdAt + 60 * DAY);
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('delays the expiry of a checkout and does not prevent it [D-§4]', async () => {
    const ref = await world.create({ createdAt: await env.currentTimeMs() });
    faults.record = { times: 8, effect: false };
    await env.sleep(DAY + 120_000);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('ENDED'), 30_000);
    expect((await world.events(ref)).at(-1)).toMatchObject({ endReason: 'checkout_expired' });
  });

  test('in webhook delivery does not affect the subscription', async () => {
    faults.deliverPending = { times: 1_000, effect: false };
    const ref = await active();
    await env.sleep(31 * DAY + 120_000);
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), 30_000);
    expect((await world.state(ref)).status).toBe('ENDED');
  });

  test('in one webhook delivery is retried without a sweep [D-54]', async () => {
    const signer = 'a-secret-of-the-merchant';
    const receiver = await startWebhookReceiver({ secrets: [signer] });
    const configId = await world.subscribe(receiver.url, signer);
    const ref = await world.create({ createdAt: await env.currentTimeMs() });
    await receiver.waitFor(2);
    faults.deliverPending = { times: 1, effect: false };
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    await env.sleep(30_000);
    await receiver.waitFor(5);
    expect(receiver.received.map(({ event }) => `${event.sequence} ${event.eventType}`)).toEqual([
      '1 intent.created',
      '2 subscription.created',
      '3 intent.success',
      '4 subscription.cycle_charged',
      '5 subscription.active',
    ]);
    const { merchantId } = world;
    await deleteWebhookConfig(world.db, { merchantId, configId, at: Date.now() });
    await receiver.close();
  });

  test('does not fail the workflow when it is permanent, and commands still work', async () => {
    const ref = await active();
    faults.chargeAttempt = { times: 1_000_000, effect: false };
    const dueAt = Number((await world.events(ref)).at(-1)?.['nextPaymentDate']);
    await env.sleep(dueAt - (await env.currentTimeMs()) + 600_000);
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const cancel = {
      kind: 'cancel',
      commandId: `c:${ref.subscriptionId}`,
      reason: 'cancelled',
    } as const;
    await whileTimePasses(world.workflows.execute(ref, cancel).catch((error: unknown) => error));
    expect(await whileTimePasses(world.workflows.execute(ref, cancel))).toMatchObject({
      kind: 'result',
    });
    expect(await world.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect(await world.book(ref)).toHaveLength(1);
  });
});

test('a recheck signal during a read of the row causes a second read', async () => {
  const ref = await active();
  const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await env.sleep(60_000);
  const reads: string[] = [];
  meanwhile.loadSubscription = async () => {
    reads.push('first');
    meanwhile.loadSubscription = async () => void reads.push('second');
    await handle.signal(poke);
  };
  await handle.signal(poke);
  await vi.waitFor(() => expect(reads).toEqual(['first', 'second']), 30_000);
});
