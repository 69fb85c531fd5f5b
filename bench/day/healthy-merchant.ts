import { setTimeout as sleep } from 'node:timers/promises';
import { distributionOf } from '../measure/percentiles.ts';
import type { Distribution } from '../measure/percentiles.ts';
import type { MeasuredStack } from '../stack/measured-stack.ts';
import type { Receiver } from '../stack/receiver.ts';
import { readDeliveries } from './renewals.ts';

/** Events of a merchant whose endpoint answers at once. */
export interface HealthyDeliveries {
  /** From an event's commit to its first arrival, ms. */
  readonly firstDeliveryMs: Distribution;
  readonly undelivered: number;
}

const DELIVERED_WITHIN_MS = 60_000;
const LOOK_MS = 250;

/** Reads the deliveries for a configuration since `since`, epoch ms, once they are all over. */
export async function settledDeliveries(
  stack: MeasuredStack,
  receiver: Receiver,
  path: string,
  configId: string,
  since: number,
): Promise<HealthyDeliveries> {
  const giveUpAt = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    const arrivals = await receiver.arrivals({ path, since });
    const found = await readDeliveries(stack, { configId }, since, arrivals);
    if (found.undelivered === 0 || performance.now() > giveUpAt) {
      const { undelivered, firstDeliveryMs } = found;
      return { undelivered, firstDeliveryMs: distributionOf(firstDeliveryMs) };
    }
    await sleep(LOOK_MS);
  }
}
