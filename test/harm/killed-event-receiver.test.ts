import { asc, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import type { Failpoint } from '../../runtime/failpoints.ts';
import { apiProcesses } from '../support/api-process.ts';
import { paymentsIn } from '../support/payments.ts';
import { repairsOf } from '../support/repairs.ts';
import { openShop } from '../support/shop.ts';
import { onStripe } from '../support/stripe.ts';
import { stripeMerchant } from '../support/stripe-seller.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/**
 * The rows of the crash table of docs/architecture.md about events of gateways. An API process is killed while it
 * receives an event of the Stripe double.
 */

const test = onStripe
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
    const server = await connectDevServer();
    onCleanup(() => server.teardown());
    return server;
  })
  .extend('place', { scope: 'file' }, async ({ server, world }, { onCleanup }) => {
    const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
    const shop = await openShop(env);
    onCleanup(async () => {
      await shop.close();
      await env.close();
    });
    return { env, shop };
  })
  .extend('scene', async ({ place, world }) => openScene(place.env, place.shop, world));

const START = Date.parse('2027-01-31T12:00:00Z');

const PAID = [
  'intent.created CREATED',
  'subscription.created CREATED',
  'intent.success SUCCESS',
  'subscription.cycle_charged ACTIVE',
  'subscription.active ACTIVE',
];
const RENEWED = [
  'intent.created CREATED',
  'intent.success SUCCESS',
  'subscription.cycle_charged ACTIVE',
];

/** Creates a subscription whose checkout is unpaid. The events of the merchant's Stripe account go to the shop's API. */
async function openScene(
  env: Awaited<ReturnType<typeof createEnvironment>>,
  shop: Awaited<ReturnType<typeof openShop>>,
  world: Parameters<typeof stripeMerchant>[2],
) {
  const seller = await stripeMerchant(env, shop, world);
  const before = (await seller.charges()).length;
  const processes = await apiProcesses(env);
  const testClockId = await env.createClock(START);
  const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
    '/subscription/create',
    { ...MONTHLY, testClockId },
  );
  const ref = { merchantId: env.merchantId, subscriptionId };
  await env.confirmStart(ref);
  const status = async () => (await env.state(ref)).status;
  const story = () => paymentsIn(env).story(subscriptionId);
  return {
    env,
    world,
    seller,
    testClockId,
    ref,
    status,
    /** Makes Stripe send its events to an API process that kills itself at the point. Resolves after the kill. */
    async crashAt(point: Failpoint, cause: () => Promise<unknown>): Promise<void> {
      const mortal = await processes.start({ failpoint: point });
      await seller.sendEventsTo(`${mortal.url}${new URL(seller.eventsUrl).pathname}`);
      await cause();
      expect(await mortal.gone).toMatchObject({ code: null, signal: 'SIGKILL' });
    },
    /** Makes Stripe deliver the event of an object to another receiver, so that Stripe never sends it to our API. */
    async deliverElsewhere(objectId: string) {
      await seller.sendEventsTo(world.receiver.url);
      await world.receiver.waitFor(objectId, 1);
      return world.receiver.of(objectId)[0]!;
    },
    /** The stored events of the account. */
    stored: async () =>
      (await seller.events()).map(
        ({ type, handledAt }) => `${type}${handledAt === null ? ' not handled' : ''}`,
      ),
    attempts: async () =>
      (
        await env.db
          .select({
            state: paymentAttempts.state,
            gatewayChargeId: paymentAttempts.gatewayChargeId,
          })
          .from(paymentAttempts)
          .orderBy(asc(paymentAttempts.createdAt), asc(paymentAttempts.id))
      ).at(-1),
    /** Expects these charges and events of the subscription, also after a sweep. */
    async expectNoMore(charges: number, events: readonly string[]): Promise<void> {
      await expect.poll(story).toEqual(events);
      await seller.settled();
      expect(await repairsOf(env)).toEqual({});
      expect((await seller.charges()).slice(before)).toEqual(Array(charges).fill('succeeded 1999'));
      expect(await story()).toEqual(events);
      expect(await status()).toBe('ACTIVE');
      await shop.expectAllDelivered(subscriptionId);
    },
  };
}

test('an API that crashes at before_event_stored loses an entered card until Stripe repeats the event; the card is charged once [D-32, D-54]', async ({
  scene,
}) => {
  const { seller, ref } = scene;
  await scene.crashAt('before_event_stored', () => seller.enterCard(ref));
  expect(await scene.stored()).toEqual([]);
  expect(await scene.status()).toBe('CREATED');

  await seller.sendEventsTo(seller.eventsUrl);
  await expect.poll(() => scene.status()).toBe('ACTIVE');
  await scene.expectNoMore(1, PAID);
  expect((await scene.stored()).filter((type) => type.startsWith('checkout'))).toEqual([
    'checkout.session.completed',
  ]);
});

test('an API that crashes at before_event_stored loses a charge’s event; a look-up finds the outcome although Stripe never repeats the event [D-40, D-54]', async ({
  scene,
}) => {
  const { env, seller, world, ref } = scene;
  await seller.enterCard(ref);
  await expect.poll(() => scene.status()).toBe('ACTIVE');
  await seller.settled();
  await world.control('POST', 'outcomes', {
    kind: 'processing',
    count: 1,
    metadata: { merchantId: env.merchantId },
  });
  await env.sendClock(scene.testClockId, Date.parse('2027-03-01T00:00:00Z'));
  await expect.poll(() => scene.attempts()).toMatchObject({ state: 'UNKNOWN' });
  await seller.settled();
  const stored = await scene.stored();
  const paymentIntentId = String((await scene.attempts())?.gatewayChargeId);

  await scene.crashAt('before_event_stored', () =>
    world.control('POST', 'settle', { paymentIntentId }),
  );
  // The event is lost. A look-up may already have found the outcome.
  expect(await scene.stored()).toEqual(stored);
  await scene.deliverElsewhere(paymentIntentId);
  await env.workflows.recheck(ref);
  await expect.poll(() => scene.attempts()).toMatchObject({ state: 'SUCCEEDED' });
  await scene.expectNoMore(2, [...PAID, ...RENEWED]);
  expect(await scene.stored()).toEqual(stored);
});

test('an API that crashes at after_event_stored leaves an event that is not handled; after the sweep the card is charged once, and a repeat of the event changes nothing [D-32, D-54]', async ({
  scene,
}) => {
  const { env, seller, ref } = scene;
  let token = '';
  await scene.crashAt('after_event_stored', async () => {
    token = (await seller.enterCard(ref)).token;
  });
  const event = await scene.deliverElsewhere(token);
  expect(await scene.stored()).toEqual(['checkout.session.completed not handled']);
  expect(await scene.status()).toBe('CREATED');

  expect(await repairsOf(env)).toEqual({});
  await env.db
    .update(gatewayEvents)
    .set({ receivedAt: Date.now() - 61_000 })
    .where(eq(gatewayEvents.gateway, seller.name));
  expect(await repairsOf(env)).toEqual({ gatewayEvents: 1 });
  await expect.poll(() => scene.status()).toBe('ACTIVE');
  await scene.expectNoMore(1, PAID);
  const again = await fetch(seller.eventsUrl, {
    method: 'POST',
    headers: { 'stripe-signature': event.signature },
    body: event.rawBody,
  });
  expect(again.status).toBe(200);
  await scene.expectNoMore(1, PAID);
  expect((await scene.stored()).filter((type) => type.startsWith('checkout'))).toEqual([
    'checkout.session.completed',
  ]);
});
