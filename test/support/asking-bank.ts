import { randomUUID } from 'node:crypto';
import { asc, eq } from 'drizzle-orm';
import { expect, vi } from 'vitest';
import { merchantGateways } from '../../db/schema/merchants.ts';
import { paymentAttempts, paymentIntents } from '../../db/schema/payments.ts';
import { accountBinding } from '../../gateways/merchant-gateways.ts';
import { openShop } from './shop.ts';
import type { Shop } from './shop.ts';
import { cardEntry, onStripe, submitCard, submitForm } from './stripe.ts';
import type { StripeWorld } from './stripe.ts';
import { connectDevServer } from './temporal-servers.ts';
import { createEnvironment } from './test-environment.ts';
import type { TestEnvironment } from './test-environment.ts';

/** The bank of this card wants the payer to confirm every payment. */
const ASKING_CARD = '4000002760003184';
const PAYING_CARD = '4242424242424242';

/**
 * The `test` function of a file. The merchant of its environment has an account at the Stripe double. `owing`
 * creates a subscription whose first payment the bank declines, because the payer must confirm it.
 */
export const onAskingBank = onStripe
  .extend('env', { scope: 'file' }, async ({ world }, { onCleanup }) => {
    const server = await connectDevServer();
    const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
    onCleanup(async () => {
      await env.close();
      await server.teardown();
    });
    await addAccount(env, world);
    return env;
  })
  .extend('shop', { scope: 'file' }, async ({ env }, { onCleanup }) => {
    const shop = await openShop(env);
    onCleanup(() => shop.close());
    return shop;
  })
  .extend(
    'owing',
    ({ env, shop, world }) =>
      () =>
        owingIn(env, shop, world),
  );

async function addAccount(env: TestEnvironment, { id, secretKey }: StripeWorld): Promise<void> {
  const { merchantId } = env;
  const name = `stripe:${id}`;
  await env.db.insert(merchantGateways).values({
    merchantId,
    name,
    mode: 'test',
    sealedKey: env.sealing.seal(secretKey, accountBinding(merchantId, name)),
    keyEnding: secretKey.slice(-4),
    isCurrent: true,
    createdAt: Date.now(),
    updatedAt: Date.now(),
  });
}

interface Read {
  status: string;
  updatePaymentMethodLink: string;
}

/**
 * Creates a subscription of 19.99 USD a month after a trial until 17 January 2027. The bank declines the
 * first payment, because the payer must confirm the payment.
 */
async function owingIn(env: TestEnvironment, shop: Shop, world: StripeWorld) {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await env.createClock(createdAt);
  const terms = { cycleCount: 3, trial: { interval: 'DAY', count: 7 } } as const;
  const ref = await env.create({ createdAt, testClockId: clock, terms });
  const { subscriptionId } = ref;
  const give = async (kind: 'completeCheckout' | 'replacePaymentMethod', number: string) =>
    env.execute(ref, { kind, ...(await cardOf(env, number)) });
  await give('completeCheckout', ASKING_CARD);
  await env.advance(clock, '2027-01-17T00:00:00Z');
  const { status, updatePaymentMethodLink: link } = await shop.merchant.get<Read>(
    `/subscription/get-subscription/${subscriptionId}`,
  );
  expect(status).toBe('UNPAID');

  const attempts = async () => {
    const rows = await env.db
      .select({ attempt: paymentAttempts })
      .from(paymentAttempts)
      .innerJoin(paymentIntents, eq(paymentIntents.id, paymentAttempts.intentId))
      .where(eq(paymentIntents.subscriptionId, subscriptionId))
      .orderBy(asc(paymentAttempts.createdAt), asc(paymentAttempts.attemptNumber));
    return rows.map(({ attempt }) => attempt);
  };
  /** Status and received amount of every PaymentIntent of the subscription, oldest first. */
  const atStripe = async () => {
    const { data } = await world.stripe.paymentIntents.list({ limit: 100 });
    return data
      .filter(({ metadata }) => metadata['subscriptionId'] === subscriptionId)
      .toReversed()
      .map(({ status, amount_received: received }) => `${status} ${received}`);
  };
  const events = async () => (await env.events(ref)).map(({ eventType }) => eventType);

  return {
    ref,
    clock,
    link,
    atStripe,
    events,
    /** Trigger, state and code of every attempt. */
    attempts: async () =>
      (await attempts()).map(({ trigger, state, errorCode }) =>
        [trigger, state, errorCode].filter((each) => each !== null).join(' '),
      ),
    /** The URL of the bank's page on which the payer can confirm the latest attempt, or null. */
    payerUrl: async () => (await attempts()).at(-1)?.payerUrl ?? null,
    giveAnotherCard: () => give('replacePaymentMethod', PAYING_CARD),
    /**
     * Sets the bank's question of the latest attempt to 20 min ago, and makes the workflow look the attempt up.
     */
    passTwentyMinutes: async () => {
      await env.db
        .update(paymentAttempts)
        .set({ payerAskedAt: Date.now() - 1_200_000 })
        .where(eq(paymentAttempts.id, (await attempts()).at(-1)?.id ?? ''));
      await env.workflows.recheck(ref);
    },
    /** Waits until no attempt is open, and returns the state. */
    settled: async () => {
      const isSettled = async () => expect((await env.state(ref)).openAttempt).toBeNull();
      await vi.waitFor(isSettled, { timeout: 60_000, interval: 20 });
      return env.state(ref);
    },
    /** Expects no further event and no change at Stripe until 16 February 2027, a day before the next billing date. */
    expectNothingFurther: async () => {
      const before = [await events(), await atStripe()];
      await env.workflows.recheck(ref);
      await env.advance(clock, '2027-02-16T00:00:00Z');
      expect([await events(), await atStripe()]).toEqual(before);
      await shop.expectAllDelivered(subscriptionId);
    },
  };
}

/** Enters a card on Stripe's page, and returns the fields of a command with the card. */
async function cardOf(env: TestEnvironment, number: string) {
  const gateway = await env.gateways.forNewMethods(env.merchantId);
  const checkoutSessionId = `cs_${randomUUID()}`;
  const entry = await gateway.openCardEntry?.(cardEntry({ session: checkoutSessionId }));
  if (entry?.kind !== 'redirect') throw new Error(`no page: ${entry?.kind}`);
  let { location } = await submitCard(entry.url, number);
  if (location?.includes('/challenge/') === true) {
    ({ location } = await submitForm(location, { outcome: 'complete' }));
  }
  const paymentToken = new URL(location ?? '').searchParams.get('payment_token');
  if (paymentToken === null) throw new Error(`no token for ${number}`);
  return { commandId: paymentToken, paymentToken, checkoutSessionId };
}
