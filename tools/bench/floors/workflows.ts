import { continueAsNew, proxyActivities, proxyLocalActivities, sleep } from '@temporalio/workflow';
import { CHARGES_QUEUE, WEBHOOKS_QUEUE } from './queues.ts';

interface EmptyActivities {
  nothing(): Promise<void>;
}

const LATER_MS = 30 * 86_400_000;
const options = { startToCloseTimeout: '30 seconds', retry: { maximumAttempts: 5 } } as const;
const charges = proxyActivities<EmptyActivities>({ ...options, taskQueue: CHARGES_QUEUE });
const webhooks = proxyActivities<EmptyActivities>({ ...options, taskQueue: WEBHOOKS_QUEUE });
const local = proxyLocalActivities<EmptyActivities>(options);

/** A renewal as two regular activities on two other task queues, followed by continue-as-new. */
export async function twoActivitiesAndNewRun(dueAt: number): Promise<never> {
  await sleepUntil(dueAt);
  await charges.nothing();
  await webhooks.nothing();
  return continueAsNew<typeof twoActivitiesAndNewRun>(dueAt + LATER_MS);
}

export async function oneLocalActivity(dueAt: number): Promise<never> {
  for (let cycle = 0; ; cycle += 1) {
    await sleepUntil(dueAt + cycle * LATER_MS);
    await local.nothing();
  }
}

async function sleepUntil(at: number): Promise<void> {
  await sleep(Math.max(1, at - Date.now()));
}
