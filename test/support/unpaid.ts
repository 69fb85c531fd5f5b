import { expect } from 'vitest';
import { paidOnClock } from './pay-checkout.ts';
import type { TestEnvironment } from './test-environment.ts';

/**
 * Creates a subscription on its own test clock, pays the first cycle and declines the second. Its status is
 * then UNPAID.
 */
export async function unpaidIn(env: TestEnvironment, code = 'card_declined') {
  const { ref, clock } = await paidOnClock(env, '2027-01-10T00:00:00Z', { cycleCount: 3 });
  const { subscriptionId } = ref;
  await env.control('POST', '/control/declines', { subscriptionId, code, count: 1 });
  await env.advance(clock, '2027-02-10T00:00:00Z');
  expect((await env.state(ref)).status).toBe('UNPAID');
  return { ref, clock };
}
