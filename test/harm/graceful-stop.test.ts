import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { eq, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { webhookDeliveries } from '../../db/schema/webhooks.ts';
import { onDevServer as test } from '../support/environment.ts';
import type { TemporalPlace } from '../support/temporal-servers.ts';
import { gate } from '../support/gate.ts';
import { apiProcesses } from '../support/api-process.ts';
import type { ApiProcess } from '../support/api-process.ts';
import { startOurProcess } from '../support/our-process.ts';
import type { OurProcess } from '../support/our-process.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { paymentsIn } from '../support/payments.ts';
import { repairsOf } from '../support/repairs.ts';
import { openShop } from '../support/shop.ts';
import type { Shop } from '../support/shop.ts';
import { createEnvironment } from '../support/test-environment.ts';
import type { TestEnvironment } from '../support/test-environment.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/**
 * Sends SIGTERM to real processes under load. Each process finishes the work that it has begun, and other
 * processes do the rest. Nothing is sent twice, no charge is looked up, and the sweep has nothing to repair.
 * The tests run concurrently, each in its own test environment.
 */

type Json = Record<string, unknown>;

/** Upper bounds of waits, not expected durations. */
const SOON = { timeout: 60_000, interval: 20 };
const CHARGE = '/payments/charge-tokenised-pm';
/**
 * For tests that expect no look-up. After 3 s a local activity is replaced by an activity that looks the charge up, so
 * the busy process of the tests runs no charge in a local activity.
 */
const WITHOUT_LOOKUP = { runsLocally: false, gatewayTimeoutMs: 12_000 };

/** Runs a test in its own environment. Stops every process that the test passes to `keep`. */
async function inOwnEnvironment(
  server: TemporalPlace,
  options: Parameters<typeof createEnvironment>[1],
  run: (
    env: TestEnvironment,
    keep: <P extends OurProcess>(started: Promise<P>) => Promise<P>,
  ) => unknown,
): Promise<void> {
  const env = await createEnvironment(server, options);
  const started: Promise<OurProcess>[] = [];
  try {
    await run(env, (process) => {
      started.push(process);
      return process;
    });
  } finally {
    for (const process of await Promise.allSettled(started)) {
      if (process.status === 'fulfilled') await process.value.stop();
    }
    await env.close();
  }
}

/** Sends SIGTERM and expects exit code 0. */
async function expectStops(process: OurProcess): Promise<void> {
  await process.stop();
  const { output, ...end } = await process.gone;
  expect(end, output).toEqual({ code: 0, signal: null });
}

/** Saves a card. Returns the body and the key of a request that charges this card. */
async function order(env: TestEnvironment) {
  const payments = paymentsIn(env);
  const { customerId, ...session } = await payments.setup();
  const card = { ...session, token: await payments.card(), nowAt: Date.now() };
  const saved = await env.activities.saveSetupMethod(card);
  if (saved.kind !== 'saved') throw new Error(`the card was not saved: ${saved.kind}`);
  const body = { customerId, pmId: saved.paymentMethodId, currency: 'USD', amount: 2_500 };
  return { key: randomUUID(), body };
}

const DELAY = { fault: 'delay', count: 100_000, match: {} };

/** Delays every further look-up by 1 ms. The hits of this fault are the number of look-ups. */
const countLookups = ({ control }: TestEnvironment) =>
  control('POST', '/control/faults', { ...DELAY, operation: 'lookup', delayMs: 1 });

/**
 * Makes Postgres hold the outcome of every further charge until `release` is called, so that the machine's speed does
 * not decide which charges are under way at the SIGTERM. The gateway must not hold them: after 5 s without an answer a
 * worker looks a charge up, and a slow machine may take 5 s to bring all charges under way. Counts the look-ups.
 */
async function holdOutcomes(env: TestEnvironment): Promise<{ release: () => Promise<unknown> }> {
  await countLookups(env);
  await env.db.execute(sql.raw(HOLD_OUTCOMES));
  return { release: () => env.db.execute(sql`delete from hold_outcomes`) };
}

const HOLD_OUTCOMES = `
  create table hold_outcomes as select true;
  create function hold_outcome() returns trigger language plpgsql as $$
  begin
    while exists (select from hold_outcomes) loop
      perform pg_sleep(0.02);
    end loop;
    return new;
  end $$;
  create trigger hold_outcome before update on payment_attempt for each row
    when (new.state <> old.state and new.state <> 'SENDING') execute function hold_outcome();`;

/** Waits until the gateway has made `made` charges, and `held` of them are recorded as SENDING. */
async function untilHeld(env: TestEnvironment, { made, held }: { made: number; held: number }) {
  await vi.waitFor(async () => {
    const { charges } = await env.control('GET', '/control/charges');
    expect(charges.length).toBe(made);
  }, SOON);
  expect(await attempts(env)).toMatchObject({ SENDING: held });
}

async function expectNoLookup({ control }: TestEnvironment): Promise<void> {
  const { faults } = (await control('GET', '/control/faults')) as unknown as {
    faults: { operation: string; hits: number }[];
  };
  expect(faults.map(({ operation, hits }) => [operation, hits])).toContainEqual(['lookup', 0]);
}

async function attempts({ db }: TestEnvironment): Promise<Record<string, number>> {
  const rows = await db.execute<{ state: string; number: number }>(
    sql`select state, count(*)::int as number from payment_attempt group by state`,
  );
  return Object.fromEntries(rows.map(({ state, number }) => [state, number]));
}

/** Expects that each of `count` charges was sent once, none was looked up, and the sweep has no work. */
async function expectSentOnce(env: TestEnvironment, count: number): Promise<void> {
  const { db, control } = env;
  expect(await attempts(env)).toEqual({ SUCCEEDED: count });
  const { charges } = await control('GET', '/control/charges');
  expect(charges.map(({ outcome, sentCount }) => `${outcome} x${sentCount}`)).toEqual(
    Array.from({ length: count }, () => 'succeeded x1'),
  );
  await expectNoLookup(env);
  expect([...(await db.execute(sql`select * from sweep_count`))]).toEqual([]);
  // Makes every pending delivery look overdue by a minute.
  await db
    .update(webhookDeliveries)
    .set({ nextAttemptAt: Date.now() - 60_000, claimedUntil: null })
    .where(eq(webhookDeliveries.state, 'PENDING'));
  expect(await repairsOf(env, 60_000)).toEqual({});
}

describe.concurrent('after SIGTERM', { timeout: 300_000 }, () => {
  test('a worker finishes the charges and deliveries that it has begun, and leaves the rest to the next worker [D-40, D-54]', ({
    server,
  }) =>
    inOwnEnvironment(server, { runsActivities: false }, async (env, keep) => {
      const shop = await openShop(env);
      const { merchant, receiver } = shop;
      const environment = { ...env.variables, WORKER_QUEUES: 'charges,webhooks' };
      const startWorker = () => keep(startOurProcess('worker.ts', environment));
      const worker = await startWorker();
      const { testClockId, ...renewed } = await paidSubscription(shop);
      const orders = await Promise.all([order(env), order(env), order(env)]);
      const outcomes = await holdOutcomes(env);

      // The outcomes of three charges and a renewal are not recorded yet, and a webhook waits for its receiver.
      const answer = gate();
      receiver.onReceive(() => answer.isOpen);
      const { subscriptionId } = await merchant.post<{ subscriptionId: string }>(CREATE, TERMS);
      const { merchantId } = env;
      await env.confirmStart({ merchantId, subscriptionId });
      await env.webhooks.wakeStream({ merchantId, streamId: subscriptionId });
      const isHeld = () =>
        receiver.received.some(({ event }) => event['subscriptionId'] === subscriptionId);
      await vi.waitFor(() => expect(isHeld()).toBe(true), SOON);
      const answers = orders.map(({ key, body }) => merchant.post<Json>(CHARGE, body, key));
      const advanced = merchant.post<Json>(ADVANCE, { testClockId, to: NEXT_MONTH });
      await untilHeld(env, { made: 5, held: 4 });

      const stopped = expectStops(worker);
      await outcomes.release();
      answer.open();
      await stopped;
      // The worker itself recorded these outcomes, because no other worker runs.
      expect(await attempts(env)).toEqual({ SUCCEEDED: 5 });

      const successor = await startWorker();
      const intents = await Promise.all(answers);
      expect(intents.map(({ status }) => status)).toEqual(['SUCCESS', 'SUCCESS', 'SUCCESS']);
      // The API answers ADVANCING if the renewal takes longer than the API waits.
      await advanced;
      await vi.waitFor(async () => {
        const clock = await merchant.get<Json>(`/test-clock/${testClockId}`);
        expect(clock['status']).toBe('READY');
      }, SOON);
      await shop.expectAllDelivered(subscriptionId);
      await shop.expectAllDelivered(renewed.subscriptionId);
      const eventTypes = ({ intentId }: Json) =>
        receiver.received
          .filter(({ event }) => event['intentId'] === intentId)
          .map(({ event }) => event.eventType);
      for (const intent of intents) {
        const all = ['intent.created', 'intent.success'];
        await vi.waitFor(() => expect(eventTypes(intent)).toEqual(all), SOON);
      }
      await expectStops(successor);
      await expectSentOnce(env, 5);
      await shop.close();
    }));

  test('an API answers its open requests and refuses new connections; another API replays the answers [D-17, D-40]', ({
    server,
  }) =>
    inOwnEnvironment(server, WITHOUT_LOOKUP, async (env, keep) => {
      const processes = await apiProcesses(env);
      const { authorization } = processes;
      const api = await keep(processes.start());
      const orders = await Promise.all([order(env), order(env), order(env)]);
      const [slow, ...quick] = orders;
      const outcomes = await holdOutcomes(env);

      // The outcomes of two charges are not recorded yet, one request arrives slowly, and two connections are idle.
      const silent = await connectTo(api);
      const idle = await connectTo(api);
      idle.write('GET /health HTTP/1.1\r\nHost: api\r\n\r\n');
      await once(idle, 'data');
      const sender = await connectTo(api);
      const text = JSON.stringify(slow.body);
      const head = [
        `POST ${CHARGE} HTTP/1.1`,
        'Host: api',
        `Authorization: ${authorization}`,
        'Content-Type: application/json',
        `Content-Length: ${text.length}`,
        `Idempotency-Key: ${slow.key}`,
        'Expect: 100-continue',
      ];
      let received = '';
      sender.setEncoding('utf8').on('data', (chunk: string) => (received += chunk));
      sender.write(`${head.join('\r\n')}\r\n\r\n`);
      await vi.waitFor(() => expect(received).toBe('HTTP/1.1 100 Continue\r\n\r\n'), SOON);
      const answers = quick.map(async ({ key, body }) => {
        const response = await fetch(api.url + CHARGE, {
          method: 'POST',
          headers: { authorization, 'content-type': 'application/json', 'idempotency-key': key },
          body: JSON.stringify(body),
        });
        const connection = response.headers.get('connection');
        return { status: response.status, connection, answer: (await response.json()) as Json };
      });
      await untilHeld(env, { made: 2, held: 2 });

      const closed = [silent, idle, sender].map((socket) => once(socket, 'close'));
      const stopped = expectStops(api);
      await vi.waitFor(() => expectRefuses(api), SOON);
      await outcomes.release();
      sender.write(text);
      await Promise.all(closed);
      expect(received).toContain('HTTP/1.1 200 OK\r\n');
      expect(received).toContain('\r\nConnection: close\r\n');
      const answered = [JSON.parse(received.split('\r\n\r\n')[2] ?? '') as Json];
      for (const { status, connection, answer } of await Promise.all(answers)) {
        expect([status, connection]).toEqual([200, 'close']);
        answered.push(answer);
      }
      await stopped;

      // Another API replays the same answers and sends nothing.
      const shop = await openShop(env);
      for (const [index, { key, body }] of orders.entries()) {
        const { intentId } = answered[index] ?? {};
        expect(answered[index]).toEqual({ intentId, status: 'SUCCESS' });
        expect(await shop.merchant.post<Json>(CHARGE, body, key)).toEqual(answered[index]);
      }
      await expectSentOnce(env, 3);
      await shop.close();
    }));
});

const CREATE = '/subscription/create';
const ADVANCE = '/test-clock/advance';
const NOW = Date.parse('2027-01-31T09:30:00Z');
const NEXT_MONTH = Date.parse('2027-03-01T00:00:00Z');
const TERMS = { ...MONTHLY, callbackUrl: 'https://merchant.example/back' };

/**
 * Creates a subscription on its own test clock, pays the first month, and waits until its events are
 * delivered.
 */
async function paidSubscription({ merchant, expectAllDelivered }: Shop) {
  const { testClockId } = await merchant.post<{ testClockId: string }>('/test-clock/create', {
    now: NOW,
  });
  const { subscriptionId, fwdUrl } = await merchant.post<
    Record<'subscriptionId' | 'fwdUrl', string>
  >(CREATE, { ...TERMS, testClockId });
  await payOnPage(fwdUrl);
  await expectAllDelivered(subscriptionId);
  return { testClockId, subscriptionId };
}

async function connectTo({ url }: ApiProcess): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  // The stopping API resets a connection that it has not accepted yet.
  socket.on('error', () => socket.destroy());
  return socket;
}

async function expectRefuses(api: ApiProcess): Promise<void> {
  const attempt = connectTo(api).then((socket) => socket.destroy());
  await expect(attempt).rejects.toThrow('ECONNREFUSED');
}
