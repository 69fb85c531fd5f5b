import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { createWorkflowStarts } from '../../temporal/subscriptions/start.ts';

/** Workflow starts that the test ends by hand. */
function manualStarts() {
  const begun: string[] = [];
  const ends: ((isStarted: boolean) => void)[] = [];
  const starts = createWorkflowStarts(({ subscriptionId }) => {
    begun.push(subscriptionId);
    return new Promise<boolean>((resolve) => ends.push(resolve));
  });
  const end = async (isStarted: boolean): Promise<void> => {
    ends.shift()?.(isStarted);
    await turn();
  };
  const endAll = async (): Promise<void> => {
    while (ends.length > 0) await end(true);
  };
  const beginMany = async (count: number): Promise<void> => {
    for (let number = 1; number <= count; number += 1) await starts.begin(ref(number));
  };
  return { starts, begun, end, endAll, beginMany };
}

const ref = (number: number): SubscriptionRef => ({
  merchantId: 'mer_1',
  subscriptionId: `sub_${number}`,
});
const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `sub_${i + 1}`);

test('a caller does not wait for the start of its workflow, and at most four starts run at once, in order', async () => {
  const { begun, endAll, beginMany } = manualStarts();
  await beginMany(10);
  expect(begun).toEqual(ids(4));
  await endAll();
  expect(begun).toEqual(ids(10));
});

test('a caller waits while 200 starts are queued, until one of them begins', async () => {
  const { starts, begun, end, endAll, beginMany } = manualStarts();
  await beginMany(204);
  let isQueued = false;
  const last = starts.begin(ref(205)).then(() => (isQueued = true));
  await turn();
  expect([begun.length, isQueued]).toEqual([4, false]);
  await end(true);
  await last;
  await endAll();
  expect(begun).toEqual(ids(205));
});

test('a failed start drops the queued starts, but not the start of a caller that still waits', async () => {
  const { starts, begun, end, endAll, beginMany } = manualStarts();
  await beginMany(204);
  const last = starts.begin(ref(205));
  await end(false);
  await last;
  await endAll();
  expect(begun).toEqual([...ids(4), 'sub_205']);
});

test('stop drops the queued starts and resolves when the running ones have ended', async () => {
  const { starts, begun, endAll, beginMany } = manualStarts();
  await beginMany(6);
  const stopped = starts.stop();
  await endAll();
  await stopped;
  expect(begun).toEqual(ids(4));
});
