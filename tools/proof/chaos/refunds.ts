import { setTimeout as sleep } from 'node:timers/promises';
import type { Load } from './load.ts';
import type { Random } from './random.ts';

const REFUNDED = 0.2;
const IN_PARTS = 0.6;
const AT_ONCE = 8;
const BETWEEN_LOOKS_MS = 200;

interface PaidCycle {
  readonly intentId: string;
  readonly amount: number;
}

/** The paid cycles that will be refunded, in the order in which their events arrived. */
export class PaidCycles {
  private readonly random: Random;
  private readonly heard = new Set<string>();
  private readonly waiting: PaidCycle[] = [];

  constructor(random: Random) {
    this.random = random;
  }

  /** Chooses the cycle of a `cycle_charged` event for a refund, by chance. An event that arrives again is ignored. */
  hear(event: Readonly<Record<string, unknown>>): void {
    const { eventType, intentId, amount } = event;
    if (eventType !== 'subscription.cycle_charged') return;
    if (typeof intentId !== 'string' || typeof amount !== 'number') return;
    if (this.heard.has(intentId)) return;
    this.heard.add(intentId);
    if (this.random.isTrue(REFUNDED)) this.waiting.push({ intentId, amount });
  }

  take(): PaidCycle | undefined {
    return this.waiting.shift();
  }
}

export async function keepRefunding(
  load: Load,
  cycles: PaidCycles,
  enough: AbortSignal,
): Promise<void> {
  const refundNext = async (): Promise<void> => {
    while (!enough.aborted) {
      const cycle = cycles.take();
      if (cycle === undefined) await sleep(BETWEEN_LOOKS_MS);
      else await refundCycle(load, cycle);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, refundNext));
}

/** Wholly, or a part and perhaps the rest, some at once. More than is left must be refused. */
async function refundCycle(load: Load, { intentId, amount }: PaidCycle): Promise<void> {
  const { random } = load;
  const part = random.between(1, amount - 1);
  if (!random.isTrue(IN_PARTS)) return refund(load, intentId, 'whole', undefined);
  if (random.isTrue(0.3)) {
    await Promise.all(
      ['a', 'b', 'c'].map((name) => refund(load, intentId, name, Math.ceil(amount / 2))),
    );
    return;
  }
  await refund(load, intentId, 'part', part);
  if (random.isTrue(0.5)) await refund(load, intentId, 'rest', undefined);
  if (random.isTrue(0.3)) await refund(load, intentId, 'too much', amount);
}

/** Requests a refund of `amount`; undefined means all that is not refunded yet. Sends some requests twice. */
async function refund(
  load: Load,
  xIntentId: string,
  name: string,
  amount: number | undefined,
): Promise<void> {
  const { client, random } = load;
  const key = `refund:${xIntentId}:${name.replaceAll(' ', '-')}`;
  const body = { xIntentId, ...(amount === undefined ? {} : { amount }) };
  load.refunds += 1;
  const answer = await client.post('/payments/merchant/refund', body, key);
  // Repeats the request, like a client that did not receive the answer.
  if (answer !== null && random.isTrue(0.3)) {
    await client.post('/payments/merchant/refund', body, key);
  }
}
