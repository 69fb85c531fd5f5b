import { expect } from 'vitest';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { attemptsOf } from '../../db/repositories/payments/orders.ts';
import { operatorActions } from '../../db/schema/operator-actions.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { eventually } from '../support/eventually.ts';
import { startOurProcess } from '../support/our-process.ts';
import { dumpRows } from '../support/restored-rows.ts';
import { active, onStripeScene } from '../support/stripe-scene.ts';
import { startStripe } from '../support/stripe.ts';
import { subscriptionWorkflowId } from '../../workflows/subscription/messages.ts';
import { verify } from '../support/verify-command.ts';

/** The rows are restored from a backup that is older than a day, after which Stripe has forgotten the keys. */

const FEBRUARY = '2027-02-28T12:00:00Z';
const KEYS_FORGOTTEN_MS = 25 * 3_600_000;
/** The time in ms by which the double dates its objects and keys back. */
const clock = { backMs: 0 };

const test = onStripeScene
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('world', { scope: 'file' }, async ({}, { onCleanup }) => {
    const world = await startStripe({ now: () => Date.now() - clock.backMs });
    onCleanup(() => world.close());
    return world;
  });

test('verify --adopt books a charge and a refund whose keys Stripe has forgotten, and sends neither again [D-39]', async ({
  scene,
}) => {
  const { env, shop, world, seller } = scene;
  const made = await active(scene);
  const { subscriptionId, testClockId } = made;
  const [january, february] = [1, 2].map((cycle) => intentIdOfCycle(subscriptionId, cycle));
  const refund = () =>
    shop.merchant.post<{ refundId: string }>(
      '/payments/merchant/refund',
      { xIntentId: january, amount: 500 },
      'a-refund',
    );
  const atStripe = async () => {
    const { charges } = await world.control('GET', `charges?accountId=${seller.account.id}`);
    const { data } = await seller.account.stripe.refunds.list();
    return [
      ...(charges as { status: string; amountMinor: number; confirmCount: number }[]).map(
        ({ status, amountMinor, confirmCount }) => `${status} ${amountMinor} x${confirmCount}`,
      ),
      ...data.map(({ status, amount }) => `${status} refund of ${amount}`),
    ];
  };
  const expected = ['succeeded 1999 x1', 'succeeded 1999 x1', 'succeeded refund of 500'];

  const restore = await dumpRows(env.db);
  clock.backMs = KEYS_FORGOTTEN_MS;
  await env.advance(testClockId, FEBRUARY);
  const { refundId } = await refund();
  await restore();
  clock.backMs = 0;
  expect(await atStripe()).toEqual(expected);

  expect((await verify(env, '--adopt')).lines).toEqual([
    `  + charge:${february}:1: 1999 USD are booked as cycle 2 of ${subscriptionId}`,
    `  + refund:${refundId}: 500 are booked as a refund of ${january}`,
    `  + ${subscriptionId}: its newer run is terminated, and a run starts from its row`,
  ]);
  await env.advance(testClockId, FEBRUARY);
  expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await refund()).toMatchObject({ refundId, amount: 500 });
  expect(await atStripe()).toEqual(expected);

  expect(await verify(env, '--adopt')).toEqual({
    code: 0,
    lines: ['  The rows have everything that the gateways have.'],
  });
  await env.advance(testClockId, '2027-03-01T12:00:00Z');
  expect(await atStripe()).toEqual(expected);
});

test('verify --adopt, before the workers start, books a charge whose key Stripe has forgotten, after Temporal was restored, too [D-39]', async ({
  scene,
}) => {
  const { env, world, seller } = scene;
  const made = await active(scene);
  const { subscriptionId, testClockId } = made;
  const { client, workflows } = env;
  const charges = async () => {
    const { charges: all } = await world.control('GET', `charges?accountId=${seller.account.id}`);
    return (all as { status: string; amountMinor: number }[]).length;
  };
  const restore = await dumpRows(env.db);
  clock.backMs = KEYS_FORGOTTEN_MS;
  await env.advance(testClockId, FEBRUARY);
  const before = await charges();
  await env.stopWorkers();
  await restore();
  clock.backMs = 0;
  // A run of the row's version, as in a restored Temporal.
  await client.workflow.getHandle(subscriptionWorkflowId(subscriptionId)).terminate();
  await workflows.ensureRunning(made);

  // The charge is from yesterday, and no worker has settled it yet.
  expect(await verify(env, '--adopt')).toEqual({
    code: 1,
    lines: [
      `  + charge:${intentIdOfCycle(subscriptionId, 2)}:1: 1999 USD are booked as cycle 2 of ${subscriptionId}`,
    ],
  });
  await env.startWorkers();
  await env.advance(testClockId, FEBRUARY);
  expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await charges()).toBe(before);
  await env.advance(testClockId, '2027-03-01T12:00:00Z');
  expect(await charges()).toBe(before);
});

test('a worker that starts after both stores were restored charges nothing before verify --adopt [D-39, D-46]', async ({
  scene,
}) => {
  const { env, world, seller } = scene;
  const { client, workflows } = env;
  const charges = async () => {
    const { charges: all } = await world.control('GET', `charges?accountId=${seller.account.id}`);
    return (all as { status: string }[]).length;
  };
  const made = await active(scene);
  const { subscriptionId, testClockId } = made;
  // The backup is older than the lost charge, and that is older than Stripe's memory of keys.
  const backupAt = Date.now() - 2 * KEYS_FORGOTTEN_MS;
  await env.db.update(paymentAttempts).set({ sentAt: [backupAt] });
  await env.db.update(operatorActions).set({ at: backupAt });
  const restore = await dumpRows(env.db);
  clock.backMs = KEYS_FORGOTTEN_MS;
  await env.advance(testClockId, FEBRUARY);
  const before = await charges();
  const intentId = intentIdOfCycle(subscriptionId, 2);
  const attempts = () => attemptsOf(env.db, { merchantId: env.merchantId, intentId });
  const [lost] = await attempts();
  await env.stopWorkers();
  await restore();
  clock.backMs = 0;
  // A run of the row's version, as in a restored Temporal.
  await client.workflow.getHandle(subscriptionWorkflowId(subscriptionId)).terminate();
  await workflows.ensureRunning(made);

  const worker = await startOurProcess('worker.ts', env.variables);
  await env.sendClock(testClockId, Date.parse(FEBRUARY));
  const key = `charge:${intentId}:1`;
  await eventually(async () =>
    expect(await attempts()).toMatchObject([
      {
        gatewayKey: key,
        state: 'UNSENT',
        isAccountRefused: false,
        reason: expect.stringMatching(
          /^the database is older than the gateway, which has pi_\w+: npm run verify -- --adopt$/,
        ) as string,
      },
    ]),
  );
  expect(await charges()).toBe(before);

  expect(await verify(env, '--adopt')).toMatchObject({
    lines: [`  + ${key}: it is looked up at the gateway`],
  });
  await workflows.recheck(made);
  await env.advance(testClockId, FEBRUARY);
  expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 2 });
  expect(await attempts()).toMatchObject([
    { state: 'SUCCEEDED', gatewayChargeId: lost?.gatewayChargeId },
  ]);
  expect(await charges()).toBe(before);
  // The next cycle is charged again.
  await env.advance(testClockId, '2027-03-31T12:00:00Z');
  expect(await env.state(made)).toMatchObject({ status: 'ACTIVE', cyclesCharged: 3 });
  expect(await charges()).toBe(before + 1);
  await worker.stop();
  await env.startWorkers();
});

test('verify --adopt books a lost refund of a charge that is older than the days that it compares [D-39]', async ({
  scene,
}) => {
  const { env, shop, seller } = scene;
  const { subscriptionId, testClockId } = await active(scene);
  clock.backMs = 40 * 24 * 3_600_000;
  await env.advance(testClockId, FEBRUARY);
  // `verify --adopt` leaves out refunds of the last 5 s.
  clock.backMs = 60_000;
  const february = intentIdOfCycle(subscriptionId, 2);
  const refund = () =>
    shop.merchant.post<{ refundId: string }>(
      '/payments/merchant/refund',
      { xIntentId: february, amount: 500 },
      'refund-of-an-old-charge',
    );
  const restore = await dumpRows(env.db);
  const { refundId } = await refund();
  clock.backMs = 0;
  await restore();
  expect(await verify(env, '--adopt')).toMatchObject({
    lines: [`  + refund:${refundId}: 500 are booked as a refund of ${february}`],
  });
  expect(await refund()).toMatchObject({ refundId, amount: 500 });
  expect((await verify(env, '--adopt')).lines).toEqual([
    '  The rows have everything that the gateways have.',
  ]);
  const { data } = await seller.account.stripe.refunds.list();
  expect(data.filter(({ metadata }) => metadata?.['key'] === `refund:${refundId}`)).toHaveLength(1);
});
