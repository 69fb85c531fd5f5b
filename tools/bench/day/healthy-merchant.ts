import { setTimeout as sleep } from 'node:timers/promises';
import { distributionOf } from '../measure/percentiles.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';
import type { Receiver } from '../stack/receiver.ts';
import { readDeliveries } from './renewals.ts';

export type HealthyDeliveries = Awaited<ReturnType<typeof settledDeliveries>>;

const DELIVERED_WITHIN_MS = 60_000;
const LOOK_MS = 250;

/** Waits at most 60 s until all deliveries of a configuration since `since` (epoch ms) are DELIVERED. */
export async function settledDeliveries(
  stack: MeasuredStack,
  receiver: Receiver,
  path: string,
  configId: string,
  since: number,
) {
  const giveUpAt = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    const arrivals = receiver.arrivals({ path, since });
    const found = await readDeliveries(stack, { configId }, since, arrivals);
    if (found.undelivered === 0 || performance.now() > giveUpAt) {
      const { undelivered, firstDeliveryMs } = found;
      return { undelivered, firstDeliveryMs: distributionOf(firstDeliveryMs) };
    }
    await sleep(LOOK_MS);
  }
}
