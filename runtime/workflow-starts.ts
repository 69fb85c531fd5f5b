import PQueue from 'p-queue';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

/** More at once only make each other, and the callers of the API, wait. */
const AT_ONCE = 4;
/** How many may wait: they have to be started before the sweep takes them for lost, after 10 s. */
const WAITING_MOST = 200;

/** Starts the workflows of subscriptions that were just created, behind the answers to their callers. */
export interface WorkflowStarts {
  /**
   * Has the workflow of a committed row started soon, once. Resolves at once; while 200 wait, when fewer
   * do. Never throws. What waits while a start fails, or when the process ends, is left alone: its first
   * command or the sweep `neverStarted` starts it.
   */
  begin(subscription: SubscriptionRef): Promise<void>;
  /** Leaves what waits to others and resolves when nothing is being started any more. */
  stop(): Promise<void>;
}

/** `start` must not throw; false says that nothing can be started now. Starting twice must be once. */
export function createWorkflowStarts(
  start: (subscription: SubscriptionRef) => Promise<boolean>,
): WorkflowStarts {
  const queue = new PQueue({ concurrency: AT_ONCE });
  const startNext = async (subscription: SubscriptionRef): Promise<void> => {
    if (!(await start(subscription))) queue.clear();
  };
  return {
    begin: async (subscription) => {
      await queue.onSizeLessThan(WAITING_MOST);
      void queue.add(() => startNext(subscription));
    },
    stop: () => {
      queue.clear();
      return queue.onIdle();
    },
  };
}
