import { randomUUID } from 'node:crypto';
import { eq, sql } from 'drizzle-orm';
import { describe, expect, vi } from 'vitest';
import { webhookDeliveries } from '../../db/schema/webhooks.ts';
import type { IntentRef } from '../../domain/payment-intent.ts';
import { onDevServer } from '../support/environment.ts';
import { eventually } from '../support/eventually.ts';
import { payOnPage } from '../../tools/scripts/client/payer.ts';
import { repairsOf } from '../support/repairs.ts';
import { ANSWERED_WITHIN_MS, openWorkerScenario } from '../support/worker-scenario.ts';
import type { WorkerScenario } from '../support/worker-scenario.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/**
 * The worker's rows of the crash tables in docs/architecture.md. In each test a merchant or a payer sends a
 * request over HTTP. The worker process is killed at a failpoint during the work for this request, which
 * includes the delivery of its events. Then another worker continues. Each test has its own test environment, so
 * that tests can run concurrently.
 */

/** `scenario` begins without an activity worker, `wholeScenario` without any worker. */
const test = onDevServer
  .extend('scenario', async ({ server }, { onCleanup }) => {
    const scenario = await openWorkerScenario(server);
    onCleanup(() => scenario.close());
    return scenario;
  })
  .extend('wholeScenario', async ({ server }, { onCleanup }) => {
    const scenario = await openWorkerScenario(server, { isWhole: true });
    onCleanup(() => scenario.close());
    return scenario;
  });

type Json = Record<string, unknown>;

/** A limit for tests that fail: five tests at once take 40 s on two idle cores. */
const LIMIT = { timeout: 300_000 };
const KILLED = { code: null, signal: 'SIGKILL' };

/** Saves a card of a new customer. Returns the fields of a charge request and the setup session's id. */
async function savedCard({ env, payments }: WorkerScenario) {
  const { customerId, ...session } = await payments.setup();
  const order = { ...session, token: await payments.card(), nowAt: Date.now() };
  const saved = await env.activities.saveSetupMethod(order);
  if (saved.kind !== 'saved') throw new Error(`the card was not saved: ${saved.kind}`);
  return { customerId, pmId: saved.paymentMethodId, setupMethodId: session.setupMethodId };
}

/** Ends the killed worker's claims, makes its deliveries 1 min overdue, and sweeps. */
async function sweepAfterLease({
  env,
  statementsEnded,
}: WorkerScenario): Promise<Record<string, number>> {
  await statementsEnded();
  await env.db
    .update(webhookDeliveries)
    .set({ nextAttemptAt: Date.now() - 60_000, claimedUntil: null })
    .where(eq(webhookDeliveries.state, 'PENDING'));
  return repairsOf(env);
}

describe.concurrent('a worker that crashes while it charges a saved card', LIMIT, () => {
  test.for([
    ['before_opening', [], []],
    ['after_opening', ['1 SENDING'], []],
    ['after_gateway', ['1 SENDING'], ['succeeded 2500 x1']],
    ['before_settling_commits', ['1 SENDING'], ['succeeded 2500 x1']],
    ['after_settling', ['1 SUCCEEDED'], ['succeeded 2500 x1']],
  ] as const)(
    'at %s leaves the attempts %j and the charges %j; the card is charged once [D-40, D-54]',
    async ([point, attempts, book], { scenario }) => {
      const { env, shop, payments, merchantId } = scenario;
      const { setupMethodId, ...card } = await savedCard(scenario);
      const body = { ...card, currency: 'USD', amount: 2_500 };
      const key = randomUUID();
      const crashing = await scenario.startMortal(point);
      // Waits until the card's event is delivered, because a delivery in flight at the kill would be sent again.
      await scenario.expectTold('setupMethodId', setupMethodId, ['1 setup_method.success']);
      const first = shop.merchant.post<Json>(CHARGE, body, key).catch(() => undefined);
      expect(await crashing.gone).toMatchObject(KILLED);
      const [{ id: intentId }] = (await env.db.execute<{ id: string }>(
        sql`select id from payment_intent`,
      )) as unknown as [{ id: string }];
      const ref: IntentRef = { merchantId, intentId };
      expect(await payments.attempts(ref)).toEqual(attempts);
      expect(await payments.book(ref)).toEqual(book);

      await scenario.goOn();
      const paid = { intentId, status: 'SUCCESS' };
      await first;
      expect(await scenario.answerTo(CHARGE, body, key)).toEqual(paid);
      expect(await payments.attempts(ref)).toEqual(['1 SUCCEEDED']);
      expect(await payments.book(ref)).toEqual(['succeeded 2500 x1']);

      // The events of the charge are delivered without a sweep.
      const events = ['1 intent.created', '2 intent.success'];
      await scenario.expectTold('intentId', intentId, events);
      expect(await repairsOf(env)).toEqual({});
    },
  );
});

const CHARGE = '/payments/charge-tokenised-pm';

/** Kills the worker at `point` during a renewal on a test clock. Then another worker continues. */
async function renewalOfCrashedWorker(
  scenario: WorkerScenario,
  point: string,
  left: { attempts: readonly string[]; charges: number },
): Promise<void> {
  const { env, shop, merchantId } = scenario;
  // Another worker makes the first charge, and ends. If the first charge takes more than 3 s, its activity runs twice,
  // so a worker that makes both charges does not always reach the renewal at the same pass of a failpoint.
  const stopWorker = await scenario.startWorker();
  const { testClockId } = await shop.merchant.post<{ testClockId: string }>('/test-clock/create', {
    now: Date.parse('2027-01-31T09:30:00Z'),
  });
  const { subscriptionId, fwdUrl } = await shop.merchant.post<Record<string, string>>(
    '/subscription/create',
    { ...TERMS, testClockId },
  );
  const ref = { merchantId, subscriptionId: String(subscriptionId) };
  await env.confirmStart(ref);
  await payOnPage(String(fwdUrl));
  await shop.expectAllDelivered(ref.subscriptionId);
  await stopWorker();
  const crashing = await scenario.startMortal(point);
  // The receiver answers the renewal's first event only after the kill, so this delivery is in flight at the kill.
  shop.receiver.onReceive(async () => void (await crashing.gone));

  const body = { testClockId, to: Date.parse('2027-03-01T00:00:00Z') };
  const key = randomUUID();
  const first = shop.merchant.post<Json>(ADVANCE, body, key).catch(() => undefined);
  expect(await crashing.gone).toMatchObject(KILLED);
  expect(await attemptStates(scenario)).toEqual(left.attempts);
  expect(await env.book(ref)).toHaveLength(left.charges);

  await scenario.goOn();
  await first;
  expect(await scenario.answerTo(ADVANCE, body, key)).toMatchObject({ status: 'READY' });
  expect(await attemptStates(scenario)).toEqual(['1 SUCCEEDED', '1 SUCCEEDED']);
  const book = await env.book(ref);
  expect(
    book.map(({ outcome, amountMinor, sentCount }) => [outcome, amountMinor, sentCount]),
  ).toEqual([
    ['succeeded', 1_999, 1],
    ['succeeded', 1_999, 1],
  ]);
  await scenario.expectTold('subscriptionId', ref.subscriptionId, [
    '1 intent.created',
    '2 subscription.created',
    '3 intent.checkout_opened',
    '4 intent.success',
    '5 subscription.cycle_charged',
    '6 subscription.active',
    '7 intent.created',
    '8 intent.success',
    '9 subscription.cycle_charged',
  ]);
  expect(await repairsOf(env)).toEqual({});
}

describe.concurrent(
  'a worker that crashes while it charges a renewal as a queued activity',
  LIMIT,
  () => {
    test('at after_gateway leaves an attempt SENDING and two charges at the gateway; the cycle is charged once [D-40]', ({
      scenario,
    }) =>
      renewalOfCrashedWorker(scenario, 'after_gateway', {
        attempts: ['1 SUCCEEDED', '1 SENDING'],
        charges: 2,
      }));
  },
);

describe.concurrent(
  'a worker that crashes while it charges a renewal inside the workflow task',
  LIMIT,
  () => {
    test.for([
      ['after_opening', ['1 SUCCEEDED', '1 SENDING'], 1],
      ['after_gateway', ['1 SUCCEEDED', '1 SENDING'], 2],
      ['before_settling_commits', ['1 SUCCEEDED', '1 SENDING'], 2],
      ['after_settling', ['1 SUCCEEDED', '1 SUCCEEDED'], 2],
    ] as const)(
      'at %s leaves the attempts %j and %d charges at the gateway; the cycle is charged once [D-40]',
      ([point, attempts, charges], { wholeScenario }) =>
        renewalOfCrashedWorker(wholeScenario, point, { attempts, charges }),
    );
  },
);

describe.concurrent('a worker that crashes in a workflow task with three renewals', LIMIT, () => {
  test('leads to one charge for each billing date when the crash follows the settlement of the third renewal [D-05, D-60]', async ({
    wholeScenario: scenario,
  }) => {
    const { env, shop, merchantId } = scenario;
    const stopWorker = await scenario.startWorker();
    const { testClockId } = await shop.merchant.post<{ testClockId: string }>(
      '/test-clock/create',
      { now: Date.parse('2027-01-31T09:30:00Z') },
    );
    const { subscriptionId, fwdUrl } = await shop.merchant.post<Record<string, string>>(
      '/subscription/create',
      { ...TERMS, testClockId },
    );
    await payOnPage(String(fwdUrl));
    await stopWorker();
    const crashing = await scenario.startMortal('after_settling:3');
    const ref = { merchantId, subscriptionId: String(subscriptionId) };
    const body = { testClockId, to: Date.parse('2027-06-15T00:00:00Z') };
    const key = randomUUID();
    const first = shop.merchant.post<Json>(ADVANCE, body, key).catch(() => undefined);
    expect(await crashing.gone).toMatchObject(KILLED);
    expect(await env.book(ref)).toHaveLength(4);

    await scenario.goOn();
    await first;
    expect(await scenario.answerTo(ADVANCE, body, key)).toMatchObject({ status: 'READY' });
    const due = await env.db.execute<{ day: string }>(
      sql`select to_char(coalesce(due_at, created_at) at time zone 'UTC', 'YYYY-MM-DD') as day
            from payment_intent order by cycle_number`,
    );
    expect(due.map(({ day }) => day)).toEqual([
      '2027-01-31',
      '2027-02-28',
      '2027-03-31',
      '2027-04-30',
      '2027-05-31',
    ]);
    expect((await env.book(ref)).map(({ sentCount }) => sentCount)).toEqual([1, 1, 1, 1, 1]);
  });
});

const ADVANCE = '/test-clock/advance';
const TERMS = { ...MONTHLY, callbackUrl: 'https://merchant.example/back' };

const attemptStates = async ({ env }: WorkerScenario) => {
  const rows = await env.db.execute<{ line: string }>(
    sql`select attempt_number || ' ' || state as line from payment_attempt order by id`,
  );
  return rows.map(({ line }) => line);
};

describe.concurrent('a worker that crashes while it saves a card', LIMIT, () => {
  test.for([
    ['after_gateway', []],
    ['after_settling', [{ status: 'LIVE' }]],
  ] as const)(
    'at %s leaves the card at the gateway and %j in our table; the card is saved once [D-50, D-54]',
    async ([point, left], { scenario }) => {
      const { env, shop } = scenario;
      const { merchant } = shop;
      const { setupMethodId, fwdUrl } = await merchant.post<Record<string, string>>(SETUP, {
        currency: 'USD',
        billingDetails: TERMS.customerDetails,
        callbackUrl: TERMS.callbackUrl,
      });
      const ours = async () => [...(await env.db.execute(sql`select status from payment_method`))];
      const atGateway = async () => [
        ...(await env.db.execute(sql`select last_four from sandbox_gateway.method`)),
      ];
      const crashing = await scenario.startMortal(point);
      const page = payOnPage(String(fwdUrl));
      expect(await crashing.gone).toMatchObject(KILLED);
      expect(await atGateway()).toEqual([{ last_four: '4242' }]);
      expect(await ours()).toEqual(left);

      await scenario.goOn();
      await page;
      await vi.waitFor(
        async () =>
          expect(await merchant.get(`/setup-method/${String(setupMethodId)}`)).toMatchObject({
            status: 'SUCCESS',
          }),
        ANSWERED_WITHIN_MS,
      );
      expect(await ours()).toEqual([{ status: 'LIVE' }]);
      expect(await atGateway()).toEqual([{ last_four: '4242' }]);
      const events = ['1 setup_method.success'];
      await scenario.expectTold('setupMethodId', String(setupMethodId), events);
      expect(await repairsOf(env)).toEqual({});
    },
  );
});

describe.concurrent('a worker that crashes', LIMIT, () => {
  test.for([
    ['after_gateway', 'SENDING'],
    ['after_settling', 'SUCCEEDED'],
  ] as const)(
    'at %s of a refund leaves the refund %s; the amount is refunded and the event sent once [D-40, D-54]',
    async ([point, left], { scenario }) => {
      const { env, shop, payments, merchantId } = scenario;
      const ref = await payments.payment('hosted');
      const token = await payments.card();
      await env.activities.chargePayment({ ...ref, token, nowAt: Date.now() });
      const body = { xIntentId: ref.intentId, amount: 900 };
      const key = randomUUID();
      const crashing = await scenario.startMortal(point);
      // Waits until the payment's events are delivered, because a delivery in flight at the kill would be sent again.
      const paid = ['1 intent.created', '2 intent.success'];
      await scenario.expectTold('intentId', ref.intentId, paid);
      const first = shop.merchant.post<Json>(REFUND, body, key).catch(() => undefined);
      expect(await crashing.gone).toMatchObject(KILLED);
      const refundStates = () =>
        env.db.execute(sql`select state, amount_minor::int as amount from refund`);
      expect([...(await refundStates())]).toEqual([{ state: left, amount: 900 }]);
      expect(await payments.book(ref)).toEqual(['succeeded 5000 x1 back 900']);

      await scenario.goOn();
      await first;
      const answer = await scenario.answerTo(REFUND, body, key);
      expect(answer).toMatchObject({ intentId: ref.intentId, amount: 900, currency: 'USD' });
      expect([...(await refundStates())]).toEqual([{ state: 'SUCCEEDED', amount: 900 }]);
      expect(await payments.book({ merchantId, intentId: ref.intentId })).toEqual([
        'succeeded 5000 x1 back 900',
      ]);
      await scenario.expectTold('intentId', ref.intentId, [...paid, '3 intent.refunded']);
      expect(await repairsOf(env)).toEqual({});
    },
  );

  test('leaves the answer and the event of a recorded cancel to the next worker [D-16, D-17, D-54]', async ({
    scenario,
  }) => {
    const { env, shop, payments } = scenario;
    const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
      '/subscription/create',
      TERMS,
    );
    const ref = { merchantId: scenario.merchantId, subscriptionId };
    await env.confirmStart(ref);
    const body = { subscriptionId };
    const key = randomUUID();
    const crashing = await scenario.startMortal('after_transition');
    await shop.expectAllDelivered(subscriptionId);
    const first = shop.merchant.post<Json>(CANCEL, body, key).catch(() => undefined);
    expect(await crashing.gone).toMatchObject(KILLED);
    expect((await env.state(ref)).status).toBe('ENDED');

    await scenario.goOn();
    await first;
    expect(await scenario.answerTo(CANCEL, body, key)).toEqual({});
    expect(await payments.story(subscriptionId)).toEqual([
      'intent.created CREATED',
      'subscription.created CREATED',
      'subscription.ended ENDED',
    ]);
    await shop.expectAllDelivered(subscriptionId);
    expect(await env.book(ref)).toEqual([]);
    expect(await repairsOf(env)).toEqual({});
  });

  test('makes the next worker send the same bytes again, in order, when it crashes after a delivery [D-54]', async ({
    scenario,
  }) => {
    const { env, shop, merchantId } = scenario;
    const crashing = await scenario.startMortal('after_delivery');
    const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
      '/subscription/create',
      TERMS,
    );
    await env.confirmStart({ merchantId, subscriptionId });
    await env.webhooks.wakeStream({ merchantId, streamId: subscriptionId });
    expect(await crashing.gone).toMatchObject(KILLED);
    expect(scenario.received('subscriptionId', subscriptionId)).toEqual(['1 intent.created']);

    // While no worker runs, only the sweep can wake the endpoint queue.
    expect(await sweepAfterLease(scenario)).toEqual({ stalledStreams: 1 });
    await scenario.goOn();
    await eventually(() =>
      expect(scenario.received('subscriptionId', subscriptionId)).toEqual([
        '1 intent.created',
        '1 intent.created',
        '2 subscription.created',
      ]),
    );
    const [once, again] = shop.receiver.received;
    expect(again?.rawBody.equals(once?.rawBody ?? Buffer.alloc(0))).toBe(true);
    expect(again?.headers['webhook-id']).toBe(once?.headers['webhook-id']);
  });
});

const SETUP = '/setup-method/create';
const REFUND = '/payments/merchant/refund';
const CANCEL = '/subscription/merchant/cancel';
