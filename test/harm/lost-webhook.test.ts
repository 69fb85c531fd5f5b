import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { checkoutCommand } from '../support/card-tokens.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createWorld } from '../support/world.ts';
import type { World } from '../support/world.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';
import { deleteWebhookConfig } from '../../db/repositories/webhook-configs.ts';

const SIGNER = 'whsec_bm90aGluZyBpcyBsb3N0IG9uIHRoZSB3YXkgdG8geW91';
const CREATED_AT = Date.parse('2027-01-10T00:00:00Z');

let server: Awaited<ReturnType<typeof connectDevServer>>;
let world: World;
let receiver: WebhookReceiver;
let configId: string;

beforeAll(async () => {
  server = await connectDevServer();
  world = await createWorld(server);
});

beforeEach(async () => {
  receiver = await startWebhookReceiver({ secrets: [SIGNER] });
  configId = await world.subscribe(receiver.url, SIGNER);
});

afterEach(async () => {
  await world.startWorkers();
  await deleteWebhookConfig(world.db, {
    merchantId: world.merchantId,
    configId,
    at: Date.now(),
  });
  await receiver.close();
});

afterAll(async () => {
  await world.close();
  await server.close();
});

const received = () =>
  receiver.received.map(
    ({ event, answered }) => `${event.sequence} ${event.eventType} ${answered}`,
  );

/** Created and paid on a clock that stands still: five events. */
async function paidLife() {
  const clock = await world.createClock(CREATED_AT);
  const terms = { cycleCount: 3 };
  const ref = await world.create({ createdAt: CREATED_AT, testClockId: clock, terms });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  return { ref, clock };
}

describe('an endpoint', () => {
  test('whose acknowledgement is lost gets the event again, the same to the byte, and then the rest [D-52, D-54]', async () => {
    // Given a receiver that took the first event and whose answer never arrived
    receiver.answerNext('close');
    // When
    await paidLife();
    await receiver.waitFor(6);
    // Then
    expect(received()).toEqual([
      '1 intent.created null',
      '1 intent.created 200',
      '2 subscription.created 200',
      '3 intent.success 200',
      '4 subscription.cycle_charged 200',
      '5 subscription.active 200',
    ]);
    const [first, again] = receiver.received;
    expect(again?.rawBody.equals(first?.rawBody ?? Buffer.alloc(0))).toBe(true);
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id']);
    expect(again?.isStandardSignatureValid && again.isXpaySignatureValid).toBe(true);
  });

  test('that fails does not hold up the money, and hears of everything in order [D-54]', async () => {
    receiver.answerNext({ status: 500 });
    const { ref, clock } = await paidLife();
    await world.advance(clock, '2027-02-10T00:00:00Z');
    expect(await world.state(ref)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
    await receiver.waitFor(9);
    expect(received()).toEqual([
      '1 intent.created 500',
      '1 intent.created 200',
      '2 subscription.created 200',
      '3 intent.success 200',
      '4 subscription.cycle_charged 200',
      '5 subscription.active 200',
      '6 intent.created 200',
      '7 intent.success 200',
      '8 subscription.cycle_charged 200',
    ]);
  });
});

describe('workers that are away', () => {
  test('when something happens deliver it when they are back [design §5]', async () => {
    // Given a subscription that was created while nobody worked
    await world.stopWorkers();
    const ref = await world.create({ createdAt: Date.now() });
    expect((await world.events(ref)).map((event) => event['eventType'])).toEqual([
      'intent.created',
      'subscription.created',
    ]);
    expect(received()).toEqual([]);
    // When they come back
    await world.startWorkers();
    // Then
    await receiver.waitFor(2);
    expect(received()).toEqual(['1 intent.created 200', '2 subscription.created 200']);
  });

  test('from the middle of a delivery on leave it to those who come after [D-54]', async () => {
    // Given workers that are stopped while the first event is on its way
    const stopping: Promise<void>[] = [];
    receiver.onReceive(() => {
      if (stopping.length === 0) stopping.push(world.stopWorkers());
    });
    const ref = await world.create({ createdAt: Date.now() });
    await receiver.waitFor(1);
    await Promise.all(stopping);
    // When others start
    await world.startWorkers();
    await world.workflows.execute(ref, checkoutCommand(await world.token()));
    // Then nothing is missing and nothing is out of order
    await vi.waitFor(
      () =>
        expect(new Set(receiver.received.map(({ event }) => event.sequence))).toEqual(
          new Set([1, 2, 3, 4, 5]),
        ),
      { timeout: 100_000, interval: 50 },
    );
    const sequences = receiver.received.map(({ event }) => event.sequence);
    expect(sequences).toEqual(sequences.toSorted((a, b) => a - b));
  });
});

describe('an event', () => {
  test('is written with what it tells of: neither is there without the other [D-51]', async () => {
    // Given a charge that is declined once, then paid
    const { ref, clock } = await paidLife();
    const { subscriptionId } = ref;
    const decline = { subscriptionId, code: 'insufficient_funds', count: 1 };
    await world.control('POST', '/control/declines', decline);
    await world.advance(clock, '2027-02-10T04:00:00Z');
    // Then every change of status and every charge in the gateway's book has its event, once
    await receiver.waitFor(11);
    expect(received().slice(5)).toEqual([
      '6 intent.created 200',
      '7 intent.failed 200',
      '8 subscription.unpaid 200',
      '9 intent.success 200',
      '10 subscription.cycle_charged 200',
      '11 subscription.active 200',
    ]);
    expect((await world.book(ref)).map(({ outcome }) => outcome)).toEqual([
      'succeeded',
      'declined',
      'succeeded',
    ]);
    expect(await world.events(ref)).toEqual(receiver.received.map(({ event }) => event));
  });
});
