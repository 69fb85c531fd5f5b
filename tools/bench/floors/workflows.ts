import { proxyLocalActivities, sleep } from '@temporalio/workflow';

interface EmptyActivities {
  nothing(): Promise<void>;
}

const LATER_MS = 30 * 86_400_000;
const local = proxyLocalActivities<EmptyActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { maximumAttempts: 5 },
});

/** Renewals as one local activity each, as the product makes them. */
export async function renewals(dueAt: number): Promise<never> {
  for (let cycle = 0; ; cycle += 1) {
    await sleep(Math.max(1, dueAt + cycle * LATER_MS - Date.now()));
    await local.nothing();
  }
}
