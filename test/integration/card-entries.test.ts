import { asc, eq, isNotNull } from 'drizzle-orm';
import { describe, expect, test as base } from 'vitest';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import { tryKey } from '../../db/repositories/checkouts/tries.ts';
import { checkoutSessions, checkoutTries } from '../../db/schema/checkouts.ts';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { outboxEvents } from '../../db/schema/webhooks.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import { subscriptionRows } from '../../db/repositories/subscriptions/row.ts';
import { createSubscriptionWorkflows } from '../../temporal/subscriptions/workflows.ts';
import { sessionIdOf, updateMethodLink } from '../../runtime/payer-links.ts';
import { openPage, submitForm } from '../../tools/scripts/client/browser.ts';
import type { Page } from '../../tools/scripts/client/browser.ts';
import { LINKS } from '../support/links.ts';
import { openShop } from '../support/shop.ts';
import { startStripe, submitCard } from '../support/stripe.ts';
import { stripeMerchant } from '../support/stripe-seller.ts';
import { connectDevServer } from '../support/temporal-servers.ts';
import { createEnvironment } from '../support/test-environment.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';
import { eventually } from '../support/eventually.ts';

/**
 * Cards that payers enter on Stripe's page, and that arrive late or after the merchant has changed its account.
 */

const file = { scope: 'file' } as const;
const test = base
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('server', file, async ({}, { onCleanup }) => {
    const server = await connectDevServer();
    onCleanup(() => server.teardown());
    return server;
  })
  // oxlint-disable-next-line eslint/no-empty-pattern -- Vitest accepts no other parameter here
  .extend('stripe', file, async ({}, { onCleanup }) => {
    let aheadMs = 0;
    const world = await startStripe({ now: () => Date.now() + aheadMs });
    onCleanup(() => world.close());
    // Stripe's instants are whole seconds.
    return { world, nextSecond: () => void (aheadMs += 1_000) };
  })
  .extend('scene', file, async ({ server, stripe }, { onCleanup }) => {
    const env = await createEnvironment(server, { stripeUrl: stripe.world.proxy.url });
    const shop = await openShop(env);
    onCleanup(async () => {
      await shop.close();
      await env.close();
    });
    return openScene(env, shop, stripe.world);
  });

const START = Date.parse('2027-01-31T12:00:00Z');
const DAY_MS = 86_400_000;
const VISA = '4242424242424242';
const MASTERCARD = '5555555555554444';
const AMEX = '378282246310005';

const PAID = [
  'intent.created',
  'intent.success',
  'subscription.active',
  'subscription.created',
  'subscription.cycle_charged',
];
/** The sorted events of a checkout whose page the payer opened. */
const OPENED_AND_PAID = ['intent.checkout_opened', ...PAID];

interface Made {
  merchantId: string;
  subscriptionId: string;
  testClockId: string;
  fwdUrl: string;
}

async function openScene(
  env: Awaited<ReturnType<typeof createEnvironment>>,
  shop: Awaited<ReturnType<typeof openShop>>,
  world: Awaited<ReturnType<typeof startStripe>>,
) {
  const seller = await stripeMerchant(env, shop, world);
  const { merchantId } = env;
  const methodOf = async (made: Made) => {
    const { paymentMethodId } = await env.state(made);
    const [row] = await env.db
      .select()
      .from(paymentMethods)
      .where(eq(paymentMethods.id, String(paymentMethodId)));
    return row;
  };
  return {
    env,
    shop,
    world,
    seller,
    methodOf,
    async created(): Promise<Made> {
      const testClockId = await env.createClock(START);
      const answer = await shop.merchant.post<{ subscriptionId: string; fwdUrl: string }>(
        '/subscription/create',
        { ...MONTHLY, testClockId },
      );
      const made = { ...answer, merchantId, testClockId };
      await env.confirmStart(made);
      return made;
    },
    async active(): Promise<Made> {
      const made = await this.created();
      await seller.enterCard(made);
      await this.hasBrand(made, 'visa');
      return made;
    },
    /** The update link that the merchant would have read at `readAt` in real time. */
    async updateLink({ subscriptionId }: Made, readAt: number): Promise<string> {
      const { paymentMethodId } = await env.state({ merchantId, subscriptionId });
      const links = { ...LINKS, publicUrl: shop.url };
      return updateMethodLink(links, { merchantId, subscriptionId, paymentMethodId }, readAt);
    },
    /** Opens Stripe's page with the update link of a day ago, and with the present one. */
    async openTwoLinks(made: Made) {
      const older = await this.updateLink(made, Date.now() - DAY_MS);
      const newer = await this.updateLink(made, Date.now());
      return { older, newer, first: await openStripe(older), second: await openStripe(newer) };
    },
    hasBrand: (made: Made, brand: string) =>
      eventually(async () => expect(await methodOf(made)).toMatchObject({ brand })),
    /** The types of the subscription's events, sorted. */
    events: async ({ subscriptionId }: Made) => {
      const rows = await env.db
        .select({ type: outboxEvents.type })
        .from(outboxEvents)
        .where(eq(outboxEvents.streamId, subscriptionId))
        .orderBy(asc(outboxEvents.sequence));
      return rows.map(({ type }) => type).toSorted();
    },
    /** The error code of each card that was tried with a link, oldest first; null for an accepted card. */
    tries: async (link: string) => {
      const sessionId = sessionOf(link);
      const rows = await env.db
        .select({ errorCode: checkoutTries.errorCode })
        .from(checkoutTries)
        .where(eq(checkoutTries.sessionId, sessionId))
        .orderBy(asc(checkoutTries.createdAt));
      return rows.map(({ errorCode }) => errorCode);
    },
    /** Expects that every event of the gateway is handled, and that a sweep finds nothing to repair. */
    async expectNothingLeft(): Promise<void> {
      await seller.settled();
      // An event that arrives now stays new.
      await env.db
        .update(gatewayEvents)
        .set({ receivedAt: Date.now() - 3_600_000 })
        .where(isNotNull(gatewayEvents.handledAt));
      const sweep = env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 });
      expect(await sweep).toEqual(NOTHING_FOUND);
    },
  };
}

const sessionOf = (link: string) => sessionIdOf(new URL(link).pathname.split('/').at(-1)!);

/** Opens Stripe's page from one of our pages, as a payer does. */
async function openStripe(link: string): Promise<{ page: Page; url: string }> {
  const page = await openPage(link);
  const leave = await submitForm(page, page.forms[0]!, {});
  const [url] = /http:\/\/[\d.:]+\/checkout\/cs_test_\w+/.exec(leave.html) ?? [];
  if (url === undefined) throw new Error(`no page of Stripe: ${leave.html}`);
  return { page: leave, url };
}

/** Enters a card on Stripe's page. Returns the URL to which Stripe sends the browser. */
async function enter({ url }: { url: string }, number: string): Promise<string> {
  const { location, html } = await submitCard(url, number);
  if (location === null) throw new Error(`the card was not taken: ${html}`);
  return location;
}

describe('a card that was entered with an older update link, before another card', () => {
  const rule = { type: 'checkout.session.completed', count: 1 };

  test('does not replace the later card when the payer of the earlier card returns last [D-33]', async ({
    scene,
    stripe,
  }) => {
    const { world } = scene;
    const made = await scene.active();
    const { older, first, second } = await scene.openTwoLinks(made);
    await world.control('POST', 'events', { action: 'drop', ...rule });
    const back = await enter(first, MASTERCARD);
    stripe.nextSecond();
    await enter(second, AMEX);
    await scene.hasBrand(made, 'amex');
    const page = await openPage(back, first.page.browser);
    expect(page.status).toBe(200);
    expect(await scene.tries(older)).toEqual(['processing_error']);
    await scene.expectNothingLeft();
    expect(await scene.methodOf(made)).toMatchObject({ brand: 'amex', status: 'LIVE' });
    expect(await scene.events(made)).toEqual(PAID);
  });

  test('does not replace the later card when the event of the earlier card arrives last [D-33]', async ({
    scene,
    stripe,
  }) => {
    const { env, world } = scene;
    const made = await scene.active();
    const { older, newer, first, second } = await scene.openTwoLinks(made);
    await world.control('POST', 'events', { action: 'hold', ...rule });
    await enter(first, MASTERCARD);
    stripe.nextSecond();
    await enter(second, AMEX);
    await scene.hasBrand(made, 'amex');
    await world.control('POST', 'events/release', {});
    await expect.poll(() => scene.tries(older)).toEqual(['processing_error']);
    await scene.expectNothingLeft();
    expect(await scene.methodOf(made)).toMatchObject({ brand: 'amex', status: 'LIVE' });
    expect(await scene.tries(newer)).toEqual([null]);
    expect(await scene.events(made)).toEqual(PAID);
    await env.advance(made.testClockId, '2027-02-28T12:00:00Z');
    expect((await scene.methodOf(made))?.brand).toBe('amex');
    expect((await env.state(made)).cyclesCharged).toBe(2);
  });
});

test('a saved card stays saved when it is submitted again after a later card, by a call that began before it was saved [D-17, D-33]', async ({
  scene,
  stripe,
}) => {
  const { env } = scene;
  const made = await scene.active();
  const { older, newer, first, second } = await scene.openTwoLinks(made);
  const back = new URL(await enter(first, MASTERCARD));
  await scene.hasBrand(made, 'mastercard');
  stripe.nextSecond();
  await enter(second, AMEX);
  await scene.hasBrand(made, 'amex');
  const rows = subscriptionRows(env.db);
  let isBeforeSave = true;
  const workflows = createSubscriptionWorkflows({
    ...env,
    rows: {
      ...rows,
      findCommand: async (ref, commandId) => {
        const found = isBeforeSave ? null : await rows.findCommand(ref, commandId);
        isBeforeSave = false;
        return found;
      },
    },
  });
  const paymentToken = back.searchParams.get('payment_token')!;
  const checkoutSessionId = sessionOf(older);
  const { merchantId, subscriptionId } = made;
  const again = await workflows.execute(
    { merchantId, subscriptionId },
    { kind: 'replacePaymentMethod', commandId: paymentToken, paymentToken, checkoutSessionId },
  );
  expect(again).toEqual({
    kind: 'result',
    result: { kind: 'checkout', outcome: 'saved', errorCode: null },
  });
  expect([await scene.tries(older), await scene.tries(newer)]).toEqual([[null], [null]]);
  await scene.expectNothingLeft();
  expect(await scene.methodOf(made)).toMatchObject({ brand: 'amex', status: 'LIVE' });
  expect(await scene.events(made)).toEqual(PAID);
});

test('the card that the payer entered last replaces the others, also when it was entered with the older update link [D-33]', async ({
  scene,
  stripe,
}) => {
  const made = await scene.active();
  const { older, first, second } = await scene.openTwoLinks(made);
  await enter(second, AMEX);
  await scene.hasBrand(made, 'amex');
  stripe.nextSecond();
  await enter(first, MASTERCARD);
  await scene.hasBrand(made, 'mastercard');
  await scene.expectNothingLeft();
  expect(await scene.methodOf(made)).toMatchObject({ brand: 'mastercard', status: 'LIVE' });
  expect(await scene.tries(older)).toEqual([null]);
  expect(await scene.events(made)).toEqual(PAID);
});

test('a card that was entered on Stripe’s page after the update link had expired is refused, also from the event [D-33]', async ({
  scene,
}) => {
  const { env, seller } = scene;
  const made = await scene.active();
  const link = await scene.updateLink(made, Date.now());
  const page = await openStripe(link);
  const [, token = ''] = new URL(link).pathname.split('/update-method/');
  await env.db
    .update(checkoutSessions)
    .set({ expiresAt: Date.now() - 60_000 })
    .where(eq(checkoutSessions.id, sessionIdOf(token)));
  await enter(page, MASTERCARD);
  await seller.settled();
  await expect.poll(() => scene.tries(link)).toEqual(['processing_error']);
  await scene.expectNothingLeft();
  expect(await scene.methodOf(made)).toMatchObject({ brand: 'visa', status: 'LIVE' });
  expect(await scene.events(made)).toEqual(PAID);
});

test('a second card of a hosted payment is charged when the first card, whose charge was undecided, is declined [D-32, D-40]', async ({
  scene,
}) => {
  const { env, shop, seller, world } = scene;
  const { xIntentId: intentId, fwdUrl } = await shop.merchant.post<{
    xIntentId: string;
    fwdUrl: string;
  }>('/payments/create-intent', {
    amount: 4_900,
    currency: 'USD',
    customerDetails: { name: 'Ada Example', email: 'ada@example.com' },
    callbackUrl: 'https://shop.example/thanks',
  });
  const attempts = () =>
    env.db
      .select({ state: paymentAttempts.state, gatewayChargeId: paymentAttempts.gatewayChargeId })
      .from(paymentAttempts)
      .where(eq(paymentAttempts.intentId, intentId))
      .orderBy(asc(paymentAttempts.attemptNumber));
  const states = async () => (await attempts()).map(({ state }) => state);
  const before = (await seller.charges()).length;
  const metadata = { intentId };
  await world.control('POST', 'outcomes', { kind: 'processing', count: 1, metadata });
  await enter(await openStripe(fwdUrl), VISA);
  await expect.poll(states).toEqual(['UNKNOWN']);
  const { token } = await seller.enterCard({ intentId }, MASTERCARD);
  const tried = async () =>
    env.db
      .select({ key: checkoutTries.key })
      .from(checkoutTries)
      .where(eq(checkoutTries.key, tryKey(token)));
  await expect.poll(tried).toHaveLength(1);
  const [first] = await attempts();
  const code = 'card_declined';
  await world.control('POST', 'settle', { paymentIntentId: first?.gatewayChargeId, code });
  await expect.poll(states).toEqual(['DECLINED', 'SUCCEEDED']);
  await scene.expectNothingLeft();
  expect(await states()).toEqual(['DECLINED', 'SUCCEEDED']);
  expect((await seller.charges()).slice(before)).toEqual(['failed 4900', 'succeeded 4900']);
});

test('a card whose page was opened before the merchant changed its account is saved and charged at the former account, also when the payer opened a page of the new account before returning [D-20, D-32]', async ({
  scene,
}) => {
  const { env, shop, world } = scene;
  const former = (await env.gateways.forNewMethods(env.merchantId)).name;
  const opened = async () => {
    const made = await scene.created();
    return { made, entry: await openStripe(made.fwdUrl) };
  };
  const [byEvent, byReturn, reopened] = [await opened(), await opened(), await opened()];
  const before = (await scene.seller.charges()).length;
  const { name } = await stripeMerchant(env, shop, world);
  // A process uses a new account after at most 5 s.
  await expect.poll(async () => (await env.gateways.forNewMethods(env.merchantId)).name).toBe(name);
  expect(name).not.toBe(former);

  await enter(byEvent.entry, VISA);
  await scene.hasBrand(byEvent.made, 'visa');
  const type = 'checkout.session.completed';
  await world.control('POST', 'events', { action: 'drop', type, count: 1 });
  await openPage(await enter(byReturn.entry, VISA), byReturn.entry.page.browser);
  const further = await openStripe(reopened.made.fwdUrl);
  expect(further.url).not.toBe(reopened.entry.url);
  await openPage(await enter(reopened.entry, VISA), reopened.entry.page.browser);

  for (const { made } of [byEvent, byReturn, reopened]) {
    await scene.hasBrand(made, 'visa');
    await expect.poll(() => scene.events(made)).toEqual(OPENED_AND_PAID);
    expect(await scene.methodOf(made)).toMatchObject({ gateway: former, status: 'LIVE' });
    expect((await env.state(made)).status).toBe('ACTIVE');
  }
  await scene.expectNothingLeft();
  expect((await scene.seller.charges()).slice(before)).toEqual([
    'succeeded 1999',
    'succeeded 1999',
    'succeeded 1999',
  ]);
});
