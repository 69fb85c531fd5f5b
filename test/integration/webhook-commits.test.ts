import { describe, expect } from 'vitest';
import type { Db } from '../../db/client.ts';
import { webhookConfigs, webhookDeliveries } from '../../db/schema/webhooks.ts';
import { EVENT_TYPES } from '../../domain/events.ts';
import { gate } from '../support/gate.ts';
import { onWebhookQueues as it, sequences, streamIds } from '../support/webhook-environment.ts';
import type { WebhookEnvironment } from '../support/webhook-environment.ts';
import { eventually } from '../support/eventually.ts';

const submit = (env: WebhookEnvironment, streamId: string, process = env.own) =>
  void process.deliver({ merchantId: env.merchantId, streamId });
const pending = async (env: WebhookEnvironment) =>
  (await env.db.select().from(webhookDeliveries)).filter(({ state }) => state === 'PENDING').length;

/** The database with a count of the statements sent to it. */
function counting(db: Db) {
  const count = { statements: 0 };
  const execute = (...args: Parameters<Db['execute']>) => {
    count.statements += 1;
    return db.execute(...args);
  };
  const get = (_: Db, name: keyof Db): unknown => (name === 'execute' ? execute : db[name]);
  return { db: new Proxy(db, { get }), count };
}

describe('the first delivery of a stream', () => {
  it('needs one SQL statement to find its endpoints, three for each endpoint, and one before each further request [D-54, D-55]', async ({
    env,
  }) => {
    const [one, two] = [await env.startReceiver(), await env.startReceiver()];
    await env.addConfig({ url: one.url });
    await env.addConfig({ url: two.url });
    const { db, count } = counting(env.db);
    const process = env.startProcess(db);
    let emitted = 0;
    // On a busy machine the configuration is read again before the first request, too.
    await eventually(async () => {
      count.statements = 0;
      emitted += 3;
      await env.emit(1_000, 2_000, 3_000);
      await env.dispatch(process);
      expect(count.statements).toBe(1 + 2 * (3 + 2));
    });
    const all = Array.from({ length: emitted }, (_, index) => index + 1);
    expect([sequences(one), sequences(two)]).toEqual([all, all]);
    expect(process.woken).toEqual([]);
  });

  it('leaves a failed event and later ones to the endpoint queue [D-54]', async ({ env }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000, 2_000);
    receiver.answerNext({ status: 500 });
    await env.dispatch();
    await env.dispatch();
    expect(sequences(receiver)).toEqual([1]);
    expect(await env.progress(configId)).toEqual(['1 PENDING 1', '2 PENDING 0']);
    expect(env.woken).toEqual([configId]);
    expect(await env.deliver({ laterMs: 60_000 })).toMatchObject({ remaining: 0 });
    expect(sequences(receiver)).toEqual([1, 1, 2]);
  });

  it('does not wait for another endpoint that hangs, also when more events come [D-54]', async ({
    env,
  }) => {
    const [dead, alive] = [await env.startReceiver(), await env.startReceiver()];
    dead.answerWith('hang');
    const deadId = await env.addConfig({ url: dead.url });
    const aliveId = await env.addConfig({ url: alive.url });
    await env.emit(1_000);
    const delivering = env.dispatch();
    await dead.waitFor(1);
    for (const sequence of [2, 3]) {
      await env.emit(1_000 * sequence);
      submit(env, env.streamId);
      await alive.waitFor(sequence);
    }
    expect(dead.received).toHaveLength(1);
    expect(env.woken).toEqual([]);

    await dead.close();
    await delivering;
    expect(sequences(alive)).toEqual([1, 2, 3]);
    expect(await env.progress(aliveId)).toEqual([
      '1 DELIVERED 1',
      '2 DELIVERED 1',
      '3 DELIVERED 1',
    ]);
    expect(await env.progress(deadId)).toEqual(['1 PENDING 1', '2 PENDING 0', '3 PENDING 0']);
    expect(env.woken).toEqual([deadId]);
  });

  it('is left to the endpoint queue when the endpoint’s breaker is open [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    await env.emit(1_000);
    const open = (pausedUntil: number) =>
      env.db.update(webhookConfigs).set({ consecutiveFailures: 5, pausedUntil });
    await open(Date.now() + 60_000);
    await env.dispatch();
    expect(env.woken).toEqual([]);
    await open(Date.now() - 1);
    await env.dispatch();
    expect(env.woken).toEqual([configId]);
    expect(receiver.received).toEqual([]);
    expect(await env.progress(configId)).toEqual(['1 PENDING 0']);
  });

  it('causes one further wake-up of the queue when many commits come during a wake-up [D-54]', async ({
    env,
  }) => {
    const receiver = await env.startReceiver();
    const ids = [
      await env.addConfig({ url: receiver.url }),
      await env.addConfig({ url: receiver.url }),
    ];
    await env.emit(1_000);
    const pausedUntil = Date.now() - 1;
    await env.db.update(webhookConfigs).set({ consecutiveFailures: 5, pausedUntil });
    const answer = gate();
    const process = env.startProcess(env.db, answer.isOpen);
    await Promise.all(Array.from({ length: 20 }, () => env.dispatch(process)));
    expect(process.woken.toSorted()).toEqual(ids.toSorted());
    answer.open();
    await expect.poll(() => process.woken).toHaveLength(4);
    await process.stop(30_000);
    expect(process.woken.toSorted()).toEqual([...ids, ...ids].toSorted());
    expect(receiver.received).toEqual([]);
  });
});

describe('a process', () => {
  it('has at most eight requests in flight to one endpoint, by commits and the queue together [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    receiver.answerWith('hang');
    await env.emitTo(...streamIds(20));
    for (const streamId of streamIds(8)) submit(env, streamId);
    await receiver.waitFor(8);
    for (const streamId of streamIds(20).slice(8)) submit(env, streamId);
    const byQueue = env.deliver();
    await env.progress(configId);
    expect(receiver.received).toHaveLength(8);
    expect(env.woken).toEqual([]);

    // After five failures the breaker is open, so the other deliveries wait for the queue.
    await receiver.close();
    expect(await byQueue).toMatchObject({ remaining: 20 });
    await expect.poll(() => env.woken).toEqual([configId]);
    const attempted = await env.progress(configId);
    expect(attempted.toSorted()).toEqual([
      ...Array.from({ length: 12 }, () => '1 PENDING 0'),
      ...Array.from({ length: 8 }, () => '1 PENDING 1'),
    ]);
  });
});

describe('the share of one merchant', () => {
  it('is about 32 requests at once, and endpoints without an answer do not delay another merchant [D-54, D-55]', async ({
    env,
  }) => {
    const receiver = await env.startReceiver();
    receiver.answerWith('hang');
    // Eight endpoints of different event types, each with eight streams.
    const types = EVENT_TYPES.slice(0, 8);
    for (const type of types) await env.addConfig({ url: receiver.url, eventTypes: [type] });
    const streams = types.flatMap((type) =>
      streamIds(8).map((id) => ({ id: `${id}_${type}`, type })),
    );
    expect(streams).toHaveLength(64);
    for (const { id, type } of streams) {
      await env.emitEvent({ merchantId: env.merchantId, streamId: id }, type);
      submit(env, id);
    }
    await receiver.waitFor(32);

    const healthy = await env.startReceiver();
    const merchantId = await env.addMerchant();
    await env.addConfig({ url: healthy.url, merchantId });
    const stream = { merchantId, streamId: 'sub_healthy' };
    await env.emitEvent(stream, 'subscription.cycle_charged');
    await env.own.deliver(stream);
    expect(healthy.received).toHaveLength(1);
    // The share of each endpoint shrinks with each further one: 8 + 8 + 8 + 8 + 6 + 5 + 4 + 4.
    expect(receiver.received.length).toBeLessThanOrEqual(51);
    const deliveries = await env.db.select().from(webhookDeliveries);
    expect(deliveries.filter(({ attempts }) => attempts > 0)).toMatchObject([
      { merchantId, state: 'DELIVERED' },
    ]);
    await receiver.close();
    await env.own.stop(30_000);
  });
});

describe('two processes', () => {
  it('send each delivery once when both deliver the same streams [D-54]', async ({ env }) => {
    const { receiver } = await env.startEndpoint();
    const underWay = new Set<string>();
    const twice: string[] = [];
    receiver.onReceive(async ({ event }) => {
      if (underWay.has(event.eventId)) twice.push(event.eventId);
      underWay.add(event.eventId);
      await new Promise((resolve) => setTimeout(resolve, 2));
      underWay.delete(event.eventId);
    });
    const ids = streamIds(30);
    await env.emitTo(...ids, ...ids);
    const other = env.startProcess();
    for (const streamId of ids) {
      submit(env, streamId);
      submit(env, streamId, other);
    }
    await eventually(async () => {
      await env.deliver();
      expect(await pending(env)).toBe(0);
    });
    expect(twice).toEqual([]);
    const received = receiver.received.map(({ event }) => event.eventId);
    expect(received).toHaveLength(60);
    expect(new Set(received).size).toBe(60);
  });

  it('keep the order of each stream while commits and the queue race [D-54]', async ({ env }) => {
    const { receiver } = await env.startEndpoint();
    receiver.answerNext(...[500, 200, 200, 500, 200, 500].map((status) => ({ status })));
    const ids = streamIds(6);
    const other = env.startProcess();
    for (let wave = 0; wave < 5; wave += 1) {
      await env.emitTo(...ids);
      for (const streamId of ids) {
        submit(env, streamId);
        submit(env, streamId, other);
      }
      await env.deliver();
    }
    await eventually(async () => {
      await env.deliver({ laterMs: 60_000 });
      expect(await pending(env)).toBe(0);
    });
    for (const streamId of ids) {
      const taken = receiver.received
        .filter(({ event, answered }) => event['streamId'] === streamId && answered === 200)
        .map(({ event }) => event.sequence);
      expect(taken).toEqual([1, 2, 3, 4, 5]);
    }
    expect(receiver.received).toHaveLength(33);
  });

  it('send an event that one process commits while the other process has claimed its stream [D-54]', async ({
    env,
  }) => {
    const { receiver, configId } = await env.startEndpoint();
    const answer = gate();
    receiver.onReceive(() => answer.isOpen);
    await env.emit(1_000);
    const first = env.dispatch();
    await expect.poll(() => receiver.received).toHaveLength(1);
    const other = env.startProcess();
    await env.emit(2_000);
    await env.dispatch(other);
    expect(sequences(receiver)).toEqual([1]);
    answer.open();
    await first;
    expect(sequences(receiver)).toEqual([1, 2]);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1', '2 DELIVERED 1']);
    expect([env.woken, other.woken]).toEqual([[], []]);
  });
});

describe('a process that stops', () => {
  it('finishes its requests in flight and leaves the rest to the queue [D-54]', async ({ env }) => {
    const { receiver, configId } = await env.startEndpoint();
    const answer = gate();
    receiver.onReceive(() => answer.isOpen);
    await env.emit(1_000, 2_000);
    submit(env, env.streamId);
    await expect.poll(() => receiver.received).toHaveLength(1);
    const stopped = env.own.stop(30_000);
    answer.open();
    await stopped;
    expect(sequences(receiver)).toEqual([1]);
    expect(await env.progress(configId)).toEqual(['1 DELIVERED 1', '2 PENDING 0']);
    expect(env.woken).toEqual([configId]);

    // An event that a task of the stopping process commits late
    await env.emitTo('sub_late');
    await env.own.deliver({ merchantId: env.merchantId, streamId: 'sub_late' });
    await env.own.stop(30_000);
    expect(env.woken).toEqual([configId, configId]);
    expect(receiver.received).toHaveLength(1);
    const process = env.startProcess();
    expect(await env.deliver({ process })).toEqual({ remaining: 0, nextDelayMs: null });
    expect(sequences(receiver).toSorted((a, b) => a - b)).toEqual([1, 1, 2]);
  });
});
