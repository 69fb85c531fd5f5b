import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { createWorkflowStarts } from '../../runtime/workflow-starts.ts';

/** Starts that end when the test says so. */
function held(limits?: Parameters<typeof createWorkflowStarts>[1]) {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const starts = createWorkflowStarts(({ subscriptionId }) => {
    begun.push(subscriptionId);
    return new Promise<void>((resolve) => ends.push(resolve));
  }, limits);
  const endAll = async (): Promise<void> => {
    while (ends.length > 0) {
      ends.shift()?.();
      await turn();
    }
  };
  return { starts, begun, endAll };
}

const ref = (number: number): SubscriptionRef => ({
  merchantId: 'mer_1',
  subscriptionId: `sub_${number}`,
});
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `sub_${i + 1}`);

test('the caller does not wait for a start, and four are made at once, in order', async () => {
  const { starts, begun, endAll } = held();
  for (let number = 1; number <= 10; number += 1) await starts.begin(ref(number));
  expect(begun).toEqual(ids(4));
  await endAll();
  expect(begun).toEqual(ids(10));
});

test('a caller waits while too many do, and has the place of one that was started', async () => {
  const { starts, begun, endAll } = held({ waitingMost: 2, placeWithinMs: 60_000 });
  for (let number = 1; number <= 6; number += 1) await starts.begin(ref(number));
  const seventh = starts.begin(ref(7));
  await turn();
  expect(begun).toEqual(ids(4));
  await endAll();
  await seventh;
  await endAll();
  expect(begun).toEqual(ids(7));
});

test('one that gets no place in time is left to the sweep', async () => {
  const { starts, begun, endAll } = held({ waitingMost: 2, placeWithinMs: 5 });
  for (let number = 1; number <= 7; number += 1) await starts.begin(ref(number));
  await endAll();
  expect(begun).toEqual(ids(6));
});

test('stopping waits for what is being started and leaves the rest to the sweep', async () => {
  const { starts, begun, endAll } = held();
  for (let number = 1; number <= 6; number += 1) await starts.begin(ref(number));
  const stopped = starts.stop();
  await endAll();
  await stopped;
  expect(begun).toEqual(ids(4));
});
