import { expect } from 'vitest';
import { checkoutCommand } from './card-tokens.ts';
import type { World } from './world.ts';

/** Creates a subscription on its own test clock whose second cycle is declined. */
export async function unpaidIn(world: World, code = 'card_declined') {
  const createdAt = Date.parse('2027-01-10T00:00:00Z');
  const clock = await world.createClock(createdAt);
  const ref = await world.create({ createdAt, testClockId: clock, terms: { cycleCount: 3 } });
  await world.workflows.execute(ref, checkoutCommand(await world.token()));
  const { subscriptionId } = ref;
  await world.control('POST', '/control/declines', { subscriptionId, code, count: 1 });
  await world.advance(clock, '2027-02-10T00:00:00Z');
  expect((await world.state(ref)).status).toBe('UNPAID');
  return { ref, clock };
}
