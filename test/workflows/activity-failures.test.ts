import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { beforeEach, describe, expect, vi } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { deleteWebhookConfig } from '../../db/repositories/webhooks/configs.ts';
import type { Command } from '../../domain/subscription/commands.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { poke, subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { onTimeSkippingServer } from '../support/environment.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { checkoutCommand } from '../support/card-tokens.ts';
import { lengthenHistory } from '../support/lives.ts';
import type { World } from '../support/world.ts';

const DAY = 86_400_000;

/** How often each activity fails, and whether it does its work before the failure. */
const faults: Partial<Record<keyof Activities, { times: number; effect: boolean }>> = {};
/** Runs once after the work of an activity, before its result is returned. */
const meanwhile: Partial<Record<keyof Activities, () => Promise<void>>> = {};

const test = onTimeSkippingServer({ wrap: withFaults });

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
async function whileTimePasses<T>(server: TestWorkflowEnvironment, answer: Promise<T>): Promise<T> {
  const isAnswered = answer.then(
    () => true,
    () => true,
  );
  for (let slept = 0; slept < DAY; slept += 10_000) {
    if (await Promise.race([isAnswered, Promise.resolve(false)])) break;
    await server.sleep(10_000);
  }
  return answer;
}

async function active(server: TestWorkflowEnvironment, world: World) {
  const ref = await world.create({
    createdAt: await server.currentTimeMs(),
    terms: { cycleCount: 2 },
  });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  return ref;
}

/** The command answers 503 while the row cannot be read. A repeat succeeds after that. */
async function isDoneWhenRowIsReadAgain(
  server: TestWorkflowEnvironment,
  world: World,
  ref: SubscriptionRef,
  command: Command,
): Promise<void> {
  const ask = () => whileTimePasses(server, world.workflows.execute(ref, command));
  await expect(ask()).rejects.toMatchObject({ code: 'service_unavailable' });
  faults.loadSubscription = { times: 0, effect: false };
  await server.sleep(60_000);
  expect(await ask()).toEqual({ kind: 'result', result: { kind: 'done' } });
}

describe('a lasting activity failure', () => {
  test.for([
    ['before', false],
    ['after', true],
  ] as const)(
    '%s the charge delays the cycle, which is charged once [D-32]',
    async ([, effect], { server, world }) => {
      const ref = await active(server, world);
      // More failures than attempts: the workflow sees the failure and tries again after its backoff.
      faults.chargeAttempt = { times: 7, effect };
      await server.sleep(31 * DAY + 120_000);
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
      await server.sleep(400 * DAY);
      expect(await world.events(ref)).toHaveLength(events.length);
    },
  );

  test.for([
    ['before', false],
    ['after', true],
  ] as const)(
    '%s the commit of a command is resolved by a repeat of the command [D-32]',
    async ([, effect], { server, world }) => {
      const ref = await active(server, world);
      faults.record = { times: 100, effect };
      const pause = { kind: 'pause', commandId: `pause:${ref.subscriptionId}` } as const;
      await whileTimePasses(
        server,
        world.workflows.execute(ref, pause).catch((error: unknown) => error),
      );
      faults.record = { times: 0, effect };
      // Longer than the backoff before the last failing attempt.
      await server.sleep(60_000);
      expect(await whileTimePasses(server, world.workflows.execute(ref, pause))).toEqual({
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

  test('after the commit of an edit does not lose the new date [D-15]', async ({
    server,
    world,
  }) => {
    const ref = await active(server, world);
    const now = await server.currentTimeMs();
    const newNextPaymentAt = now + 5 * DAY;
    faults.record = { times: 7, effect: true };
    const edit = {
      kind: 'edit',
      commandId: `edit:${ref.subscriptionId}`,
      newNextPaymentAt,
    } as const;
    await whileTimePasses(
      server,
      world.workflows.execute(ref, edit).catch((error: unknown) => error),
    );
    await server.sleep(5 * DAY);
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

  test('after the commit of a pause does not refuse a later unpause [D-17]', async ({
    server,
    world,
  }) => {
    const ref = await active(server, world);
    faults.record = { times: 7, effect: true };
    faults.loadSubscription = { times: 1_000, effect: false };
    const pause = { kind: 'pause', commandId: `pause:${ref.subscriptionId}` } as const;
    expect(await whileTimePasses(server, world.workflows.execute(ref, pause))).toEqual({
      kind: 'result',
      result: { kind: 'done' },
    });
    const unpause = {
      kind: 'unpause',
      commandId: `unpause:${ref.subscriptionId}`,
      newNextPaymentAt: (await server.currentTimeMs()) + 5 * DAY,
    } as const;
    await isDoneWhenRowIsReadAgain(server, world, ref, unpause);
    expect((await world.state(ref)).status).toBe('ACTIVE');
  });

  test('during the read of the row lets a repeat of the command succeed later [D-17]', async ({
    server,
    world,
  }) => {
    const ref = await active(server, world);
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await server.sleep(60_000);
    faults.loadSubscription = { times: 1_000, effect: false };
    await handle.signal(poke);
    const pause = { kind: 'pause', commandId: `pause:${ref.subscriptionId}` } as const;
    await isDoneWhenRowIsReadAgain(server, world, ref, pause);
    expect((await world.state(ref)).status).toBe('PAUSED');
  });

  test('delays an operator’s cancel signal until the database is back [D-§4]', async ({
    server,
    world,
  }) => {
    const ref = await active(server, world);
    faults.record = { times: 14, effect: false };
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('cancel');
    await server.sleep(300_000);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('ENDED'), 30_000);
    expect(faults.record.times).toBe(0);
    await server.sleep(400 * DAY);
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('delays an operator’s pause signal in a full run until the database is back', async ({
    server,
    world,
  }) => {
    const createdAt = await server.currentTimeMs();
    const clock = await world.createClock(createdAt);
    const ref = await world.create({ createdAt, testClockId: clock });
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    faults.record = { times: 14, effect: false };
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    await handle.signal('pause');
    await lengthenHistory(handle, createdAt, 450);
    await world.sendClock(clock, createdAt + DAY);
    await server.sleep(300_000);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('PAUSED'), 30_000);
    expect(faults.record.times).toBe(0);
    await world.advance(clock, createdAt + 60 * DAY);
    expect(await world.book(ref)).toHaveLength(1);
  });

  test('delays the expiry of a checkout and does not prevent it [D-§4]', async ({
    server,
    world,
  }) => {
    const ref = await world.create({ createdAt: await server.currentTimeMs() });
    faults.record = { times: 8, effect: false };
    await server.sleep(DAY + 120_000);
    await vi.waitFor(async () => expect((await world.state(ref)).status).toBe('ENDED'), 30_000);
    expect((await world.events(ref)).at(-1)).toMatchObject({ endReason: 'checkout_expired' });
  });

  test('in webhook delivery does not affect the subscription', async ({ server, world }) => {
    faults.deliverPending = { times: 1_000, effect: false };
    const ref = await active(server, world);
    await server.sleep(31 * DAY + 120_000);
    await vi.waitFor(async () => expect((await world.state(ref)).cyclesCharged).toBe(2), 30_000);
    expect((await world.state(ref)).status).toBe('ENDED');
  });

  test('in one webhook delivery is retried without a sweep [D-54]', async ({ server, world }) => {
    const signer = 'a-secret-of-the-merchant';
    const receiver = await startWebhookReceiver({ secrets: [signer] });
    const configId = await world.subscribe(receiver.url, signer);
    const ref = await world.create({ createdAt: await server.currentTimeMs() });
    await receiver.waitFor(2);
    faults.deliverPending = { times: 1, effect: false };
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    await server.sleep(30_000);
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

  test('does not fail the workflow when it is permanent, and commands still work', async ({
    server,
    world,
  }) => {
    const ref = await active(server, world);
    faults.chargeAttempt = { times: 1_000_000, effect: false };
    const dueAt = Number((await world.events(ref)).at(-1)?.['nextPaymentDate']);
    await server.sleep(dueAt - (await server.currentTimeMs()) + 600_000);
    const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
    expect((await handle.describe()).status.name).toBe('RUNNING');
    const cancel = {
      kind: 'cancel',
      commandId: `c:${ref.subscriptionId}`,
      reason: 'cancelled',
    } as const;
    await whileTimePasses(
      server,
      world.workflows.execute(ref, cancel).catch((error: unknown) => error),
    );
    expect(await whileTimePasses(server, world.workflows.execute(ref, cancel))).toMatchObject({
      kind: 'result',
    });
    expect(await world.state(ref)).toMatchObject({ status: 'ENDED', endReason: 'cancelled' });
    expect(await world.book(ref)).toHaveLength(1);
  });
});

test('a recheck signal during a read of the row causes a second read', async ({
  server,
  world,
}) => {
  const ref = await active(server, world);
  const handle = world.client.workflow.getHandle(subscriptionWorkflowId(ref.subscriptionId));
  await server.sleep(60_000);
  const reads: string[] = [];
  meanwhile.loadSubscription = async () => {
    reads.push('first');
    meanwhile.loadSubscription = async () => void reads.push('second');
    await handle.signal(poke);
  };
  await handle.signal(poke);
  await vi.waitFor(() => expect(reads).toEqual(['first', 'second']), 30_000);
});
