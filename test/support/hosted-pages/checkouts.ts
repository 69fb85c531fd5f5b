import { eq } from 'drizzle-orm';
import { checkoutSessions } from '../../../db/schema/checkouts.ts';
import type { ApiEnvironment } from '../api-environment.ts';
import { createSubscription } from '../fixtures/subscriptions.ts';
import { createClock } from '../fixtures/test-clocks.ts';

export const JAN_31 = Date.UTC(2026, 0, 31, 12);

/** Creates a checkout on a test clock at noon of 31 January 2026. */
export async function openCheckout(api: ApiEnvironment, changes: Record<string, unknown> = {}) {
  const clock = await createClock(api, JAN_31);
  const made = await createSubscription(api, { testClockId: clock, ...changes });
  return { subscriptionId: made.subscriptionId, path: new URL(made.fwdUrl).pathname, clock };
}

/** The session of the object whose id is in `column`. */
export async function sessionOf(
  { db }: ApiEnvironment,
  id: string,
  column: 'subscriptionId' | 'intentId' | 'setupMethodId' = 'subscriptionId',
) {
  const [row] = await db.select().from(checkoutSessions).where(eq(checkoutSessions[column], id));
  return row!;
}
