import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { createWorkflowStarts } from '../../runtime/workflow-starts.ts';

/** Starts that end when the test says so. */
function held() {
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

test('the caller does not wait for a start, and four are made at once, in order', async () => {
  const { begun, endAll, beginMany } = held();
  await beginMany(10);
  expect(begun).toEqual(ids(4));
  await endAll();
  expect(begun).toEqual(ids(10));
});

test('a caller waits while 200 do, until one of them is started', async () => {
  const { starts, begun, end, endAll, beginMany } = held();
  await beginMany(204);
  let hasPlace = false;
  const last = starts.begin(ref(205)).then(() => (hasPlace = true));
  await turn();
  expect([begun.length, hasPlace]).toEqual([4, false]);
  await end(true);
  await last;
  await endAll();
  expect(begun).toEqual(ids(205));
});

test('after a start that failed, waiting ones are left to the sweep and their callers go on', async () => {
  const { starts, begun, end, endAll, beginMany } = held();
  await beginMany(204);
  const last = starts.begin(ref(205));
  await end(false);
  await last;
  await endAll();
  expect(begun).toEqual([...ids(4), 'sub_205']);
});

test('stop resolves when the starts under way have ended; those that wait are left to the sweep', async () => {
  const { starts, begun, endAll, beginMany } = held();
  await beginMany(6);
  const stopped = starts.stop();
  await endAll();
  await stopped;
  expect(begun).toEqual(ids(4));
});
