import PQueue from 'p-queue';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import type { SubscriptionRuns } from '../../temporal/subscriptions/runs.ts';

const AT_ONCE = 8;
/** The import waits while at least this number of starts is queued. */
const MAX_WAITING = 200;
/** After this number of failed starts the import tries no further start: without Temporal a start takes seconds. */
const FAILURES_MAX = 10;

export type Starter = Pick<SubscriptionRuns, 'start' | 'ensureRunning'>;

/** `begin` waits while 200 starts are queued. `end` returns how many the maintenance sweep must start. */
export function createStarts(workflows: Starter) {
  const queue = new PQueue({ concurrency: AT_ONCE });
  let failures = 0;
  const startNext = async (subscription: SubscriptionRef): Promise<void> => {
    if (failures < FAILURES_MAX && (await isStarted(workflows, subscription))) return;
    failures += 1;
  };
  return {
    async begin(subscription: SubscriptionRef): Promise<void> {
      await queue.onSizeLessThan(MAX_WAITING);
      void queue.add(() => startNext(subscription));
    },
    async end(): Promise<number> {
      await queue.onIdle();
      return failures;
    },
  };
}

/** If `start` has not succeeded in 1 s, `ensureRunning` has longer: the server may be busy. */
async function isStarted(workflows: Starter, subscription: SubscriptionRef): Promise<boolean> {
  if (await workflows.start(subscription)) return true;
  return workflows.ensureRunning(subscription).then(
    () => true,
    () => false,
  );
}
