import { asc, eq, isNotNull } from 'drizzle-orm';
import { expect } from 'vitest';
import { NOTHING_FOUND } from '../../activities/repair/sweep.ts';
import { gatewayEvents } from '../../db/schema/gateway-events.ts';
import { outboxEvents } from '../../db/schema/webhooks.ts';
import { paymentAttempts } from '../../db/schema/payments.ts';
import { paymentMethods } from '../../db/schema/customers.ts';
import type { TestEnvironment } from './test-environment.ts';
import type { Shop } from './shop.ts';
import type { StripeWorld } from './stripe.ts';
import { onStripeShop } from './stripe-merchant.ts';
import { stripeMerchant } from './stripe-seller.ts';
import { MONTHLY } from '../../tools/scripts/client/monthly.ts';

/** The `test` function of tests of a merchant who charges at the Stripe double. The tests of a file share one `scene`. */
export const onStripeScene = onStripeShop.extend(
  'scene',
  { scope: 'file' },
  async ({ env, shop, world }) => ({
    env,
    shop,
    world,
    seller: await stripeMerchant(env, shop, world),
  }),
);

export interface Scene {
  env: TestEnvironment;
  shop: Shop;
  world: StripeWorld;
  seller: Awaited<ReturnType<typeof stripeMerchant>>;
}

/** A time limit, not an expectation. */
export const SOON = { timeout: 60_000, interval: 50 };
const START = Date.parse('2027-01-31T12:00:00Z');

export async function created({ env, shop }: Scene) {
  const testClockId = await env.createClock(START);
  const { subscriptionId } = await shop.merchant.post<{ subscriptionId: string }>(
    '/subscription/create',
    { ...MONTHLY, testClockId },
  );
  const made = { merchantId: env.merchantId, subscriptionId, testClockId };
  await env.confirmStart(made);
  return made;
}

/**
 * Creates a subscription on a test clock. The payer pays the first cycle and never returns from Stripe's
 * page.
 */
export async function active(scene: Scene, card?: string) {
  const made = await created(scene);
  await scene.seller.enterCard(made, card);
  await scene.shop.news(made.subscriptionId, 5);
  await scene.seller.settled();
  return made;
}

export const eventsOf = async ({ env }: Scene, streamId: string): Promise<string[]> => {
  const rows = await env.db
    .select({ type: outboxEvents.type })
    .from(outboxEvents)
    .where(eq(outboxEvents.streamId, streamId))
    .orderBy(asc(outboxEvents.sequence));
  return rows.map(({ type }) => type);
};

/** The row of the subscription's payment method, and the row of the latest attempt with this method. */
export async function lastAttempt({ env }: Scene, { subscriptionId }: { subscriptionId: string }) {
  const state = await env.state({ merchantId: env.merchantId, subscriptionId });
  const [method] = await env.db
    .select()
    .from(paymentMethods)
    .where(eq(paymentMethods.id, String(state.paymentMethodId)));
  if (!method) throw new Error('no method');
  const attempts = await env.db
    .select()
    .from(paymentAttempts)
    .where(eq(paymentAttempts.paymentMethodId, method.id))
    .orderBy(asc(paymentAttempts.createdAt), asc(paymentAttempts.id));
  return { method, attempt: attempts.at(-1)! };
}

/** Expects that every event of the gateway is handled, and that a sweep finds nothing to repair. */
export async function expectNothingLeft({ env, seller }: Scene): Promise<void> {
  await seller.settled();
  // An event that arrives now stays new.
  await env.db
    .update(gatewayEvents)
    .set({ receivedAt: Date.now() - 3_600_000 })
    .where(isNotNull(gatewayEvents.handledAt));
  expect(await env.activities.sweep({ nowAt: Date.now(), lookBackMs: 0 })).toEqual(NOTHING_FOUND);
}
