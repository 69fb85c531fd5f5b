import PQueue from 'p-queue';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

/** Maximum number of concurrent starts. More would only slow down each other and the API's callers. */
const AT_ONCE = 4;
/**
 * Maximum length of the queue. The sweep takes a subscription for lost after 10 s, so its workflow must
 * start before that.
 */
const MAX_WAITING = 200;

/** Starts the workflows of new subscriptions after their callers have been answered. */
export interface WorkflowStarts {
  /**
   * Queues the start of the workflow of a committed row. Resolves at once, or when fewer than 200
   * starts wait. Never throws. If a start fails or the process ends, the waiting starts are dropped.
   * Then the subscription's first command or the sweep `neverStarted` starts the workflow.
   */
  begin(subscription: SubscriptionRef): Promise<void>;
  /** Drops the waiting starts. Resolves when no start is running. */
  stop(): Promise<void>;
}

/**
 * `start` must not throw, and a repeated start must have no effect. If it returns false, no workflow
 * can be started now.
 */
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
      void queue.add(() => startNext(subscription));
    },
    stop: () => {
      queue.clear();
      return queue.onIdle();
    },
  };
}
