import { setTimeout as sleep } from 'node:timers/promises';
import PQueue from 'p-queue';
import type { SubscriptionRef } from '../domain/subscription/state.ts';

/** More at once only make each other, and the callers of the API, wait. */
const AT_ONCE = 4;

export interface StartLimits {
  /** How many may wait: they have to be started before the sweep takes them for lost, after 10 s. */
  readonly waitingMost: number;
  /** Longest wait for a place, in ms. */
  readonly placeWithinMs: number;
}

const LIMITS: StartLimits = { waitingMost: 200, placeWithinMs: 1_000 };

/** Starts the workflows of subscriptions that were just created, behind the answers to their callers. */
export interface WorkflowStarts {
  /**
   * Has the workflow of a committed row started soon, once. Resolves at once; while too many wait, when
   * fewer do, or after a second: that one is left alone. Never throws. What is left alone, or waits when
   * the process ends, is started by its first command or by the sweep `neverStarted`.
   */
  begin(subscription: SubscriptionRef): Promise<void>;
  /** Leaves what waits to others and resolves when nothing is being started any more. */
  stop(): Promise<void>;
}

/** `start` must not throw, and starting twice must be once. */
export function createWorkflowStarts(
  start: (subscription: SubscriptionRef) => Promise<unknown>,
  { waitingMost, placeWithinMs }: StartLimits = LIMITS,
): WorkflowStarts {
  const queue = new PQueue({ concurrency: AT_ONCE });
  const hasPlace = (): boolean => queue.size < waitingMost;
  return {
    begin: async (subscription) => {
      if (!hasPlace()) {
        await Promise.race([queue.onSizeLessThan(waitingMost), sleep(placeWithinMs)]);
      }
      if (hasPlace()) void queue.add(() => start(subscription));
    },
    stop: () => {
      queue.clear();
      return queue.onIdle();
    },
  };
}
