import PQueue from 'p-queue';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { outsideRequest } from '../../runtime/request-scope.ts';

/** Maximum number of concurrent starts. A higher number would slow down the API's other calls. */
const AT_ONCE = 4;
/** The waiting starts must fit into the 10 s after which the sweep starts a workflow. */
const MAX_WAITING = 200;

/** Starts the workflows of new subscriptions in the background. */
export interface WorkflowStarts {
  /**
   * Queues the start of a committed row's workflow. Resolves when fewer than 200 wait. Never throws. After a failed
   * start all are dropped; the subscription's first command or the sweep starts them.
   */
  begin(subscription: SubscriptionRef): Promise<void>;
  /** Drops the waiting starts. Resolves when no start is running. */
  stop(): Promise<void>;
}

/** `start` must not throw. After `false`, all waiting starts are dropped. */
export function createWorkflowStarts(
  start: (subscription: SubscriptionRef) => Promise<boolean>,
): WorkflowStarts {
  const queue = new PQueue({ concurrency: AT_ONCE });
  const startNext = async (subscription: SubscriptionRef): Promise<void> => {
    if (!(await start(subscription))) queue.clear();
  };
  return {
    begin: async (subscription) => {
      await queue.onSizeLessThan(MAX_WAITING);
      // The row is committed, so the workflow must start even if the request was answered at its deadline.
      void queue.add(() => outsideRequest(() => startNext(subscription)));
    },
    stop: () => {
      queue.clear();
      return queue.onIdle();
    },
  };
}
