import { expect } from 'vitest';
import { changeGateway } from '../../db/repositories/merchants/gateways.ts';
import { attemptsOf } from '../../db/repositories/payments/orders.ts';
import { intentIdOfCycle } from '../../domain/ids.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { eventually } from '../support/eventually.ts';
import { repairsOf } from '../support/repairs.ts';
import { onStripeShop as test } from '../support/stripe-merchant.ts';
import { stripeMerchant } from '../support/stripe-seller.ts';

const NEW_KEY = 'sk_test_contract_after_the_old_one';

test('a merchant is told once that Stripe refuses the account, and once that it takes charges again [D-46]', async ({
  env,
  shop,
  world,
}) => {
  const { merchantId } = env;
  const seller = await stripeMerchant(env, shop, world);
  const clock = await shop.createClock(Date.parse('2027-01-31T09:30:00Z'));
  const { testClockId } = clock;
  const { subscriptionId } = await shop.subscribe({ testClockId, cycleCount: 2 });
  const ref = { merchantId, subscriptionId };
  await seller.enterCard({ subscriptionId });
  await eventually(async () => expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE' }));
  const told = () =>
    shop.receiver.received
      .map(({ event }) => event)
      .filter(({ eventType }) => eventType.startsWith('account.'));
  const blockedAccounts = async () => {
    const answer = await fetch(`${shop.url}/health`);
    return ((await answer.json()) as { blockedAccounts: number }).blockedAccounts;
  };

  // The merchant rolls the key at Stripe, and forgets to give it to us.
  await world.control('POST', 'accounts/key', {
    accountId: seller.account.id,
    secretKey: NEW_KEY,
  });
  await env.sendClock(testClockId, Date.parse('2027-03-01T00:00:00Z'));
  const cycle = { merchantId, intentId: intentIdOfCycle(subscriptionId, 2) };
  await eventually(async () =>
    expect(await attemptsOf(env.db, cycle)).toMatchObject([
      { state: 'UNSENT', isAccountRefused: true, gatewayChargeId: null },
    ]),
  );
  const [attempt] = await attemptsOf(env.db, cycle);
  expect(await blockedAccounts()).toBe(0);
  expect(await repairsOf(env)).toEqual({});
  await eventually(() => expect(told()).toHaveLength(1));
  expect(await repairsOf(env)).toEqual({});
  expect(await blockedAccounts()).toBe(1);
  const blocked = {
    eventType: 'account.charges_blocked',
    sequence: 1,
    gateway: seller.name,
    blockedSince: attempt?.unansweredAt,
    reason: attempt?.reason,
  };
  expect(told()).toMatchObject([blocked]);
  expect(attempt?.reason).toMatch(/^Stripe answered 401/);
  expect(await env.state(ref)).toMatchObject({ status: 'ACTIVE', owed: { lastDeclineCode: null } });

  await changeGateway(env.db, {
    merchantId,
    name: seller.name,
    mode: 'test',
    key: {
      sealed: env.sealing.seal(NEW_KEY, accountBinding(merchantId, seller.name)),
      ending: NEW_KEY.slice(-4),
    },
    sealedWebhookSecret: null,
    makeCurrent: true,
    nowAt: Date.now(),
  });
  await env.workflows.recheck(ref);
  await eventually(async () => expect(await env.state(ref)).toMatchObject({ status: 'ENDED' }));
  expect(await repairsOf(env)).toEqual({});
  await eventually(() => expect(told()).toHaveLength(2));
  expect(told()).toMatchObject([
    blocked,
    {
      eventType: 'account.charges_resumed',
      sequence: 2,
      gateway: seller.name,
      blockedSince: attempt?.unansweredAt,
      reason: null,
    },
  ]);
  expect(await attemptsOf(env.db, cycle)).toMatchObject([
    { attemptNumber: 1, state: 'SUCCEEDED', isAccountRefused: false },
  ]);
  const { charges } = await world.control('GET', 'charges');
  expect(
    (charges as { metadata: { subscriptionId?: string } }[]).filter(
      ({ metadata }) => metadata.subscriptionId === subscriptionId,
    ),
  ).toHaveLength(2);
  await shop.expectAllDelivered(subscriptionId);
  expect(await repairsOf(env)).toEqual({});
  expect(await blockedAccounts()).toBe(0);
  expect(told()).toHaveLength(2);
});
