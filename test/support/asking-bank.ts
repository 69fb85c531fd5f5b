import { asc, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { paymentAttempts, paymentIntents } from '../../db/schema/payments.ts';
import type { Shop } from './shop.ts';
import type { StripeWorld } from './stripe.ts';
import { checkoutCommand, SESSION } from './card-tokens.ts';
import { ASKING_CARD, PAYING_CARD } from './bank-visits.ts';
import {
  atStripe,
  enterAccount,
  onStripeShop,
  passTwentyMinutes,
  tokenAtStripe,
} from './stripe-merchant.ts';
import { createEnvironment } from './test-environment.ts';
import type { TestEnvironment } from './test-environment.ts';
import { eventually } from './eventually.ts';

/**
 * The `test` function of a file. The merchant of its environment has an account at the Stripe double. `owing`
 * creates a subscription whose first payment the bank declines, because the payer must confirm it.
 */
export const onAskingBank = onStripeShop
  .extend('env', { scope: 'file' }, async ({ server, world }, { onCleanup }) => {
    const env = await createEnvironment(server, { stripeUrl: world.proxy.url });
    onCleanup(() => env.close());
    await enterAccount(env, world);
    return env;
  })
  .extend(
    'owing',
    ({ env, shop, world }) =>
      () =>
        owingIn(env, shop, world),
  );

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
    env.execute(ref, { ...checkoutCommand(await tokenAtStripe(env, SESSION, number)), kind });
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
  const charges = () => atStripe(world, subscriptionId);
  const events = async () => (await env.events(ref)).map(({ eventType }) => eventType);

  return {
    ref,
    clock,
    link,
    /** Status and received amount of every PaymentIntent of the subscription, oldest first. */
    atStripe: charges,
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
      await passTwentyMinutes(env, (await attempts()).at(-1)?.intentId ?? '');
      await env.workflows.recheck(ref);
    },
    /** Waits until no attempt is open, and returns the state. */
    settled: async () => {
      await eventually(async () => expect((await env.state(ref)).openAttempt).toBeNull());
      return env.state(ref);
    },
    /** Expects no further event and no change at Stripe until 16 February 2027, a day before the next billing date. */
    expectNothingFurther: async () => {
      const before = [await events(), await charges()];
      await env.workflows.recheck(ref);
      await env.advance(clock, '2027-02-16T00:00:00Z');
      expect([await events(), await charges()]).toEqual(before);
      await shop.expectAllDelivered(subscriptionId);
    },
  };
}
