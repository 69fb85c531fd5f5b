import PQueue from 'p-queue';
import type { Snapshot } from '../../domain/subscription/snapshot.ts';
import { summarize } from '../../domain/subscription/describe.ts';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { outsideRequest } from '../../runtime/request-scope.ts';
import { PAYER_PRIORITY, WORKFLOW_QUEUE, WORKFLOW_TASK_TIMEOUT } from '../../workflows/messages.ts';
import {
  attributesOf,
  fixedAttributesOf,
  memoOf,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import type { SubscriptionInput } from '../../workflows/subscription/messages.ts';

/** A merchant's first 50 subscriptions have priority key 2, up to 500 key 3, up to 5,000 key 4, the rest key 5. */
const SUBSCRIPTIONS_UP_TO = [50, 500, 5_000] as const;

/** A start counts no more earlier subscriptions: from this number on, the priority key no longer changes. */
export const EARLIER_MOST = Math.max(...SUBSCRIPTIONS_UP_TO);

/**
 * Returns the priority key, 2 to 5. Renewals of a merchant with at most 50 subscriptions wait for at most 50 of each
 * other merchant.
 */
export function renewalPriority(earlierSubscriptions: number): number {
  const tier = SUBSCRIPTIONS_UP_TO.findIndex((upTo) => earlierSubscriptions < upTo);
  return (tier === -1 ? SUBSCRIPTIONS_UP_TO.length : tier) + PAYER_PRIORITY + 1;
}

/** The run of a CREATED subscription, for which a payer waits, goes before every renewal. */
export function priorityOf({ state, earlier }: Snapshot) {
  const isAwaited = state.status === 'CREATED';
  const priorityKey = isAwaited ? PAYER_PRIORITY : renewalPriority(earlier);
  return { fairnessKey: state.merchantId, priorityKey };
}

export function startOptions(snapshot: Snapshot, taskQueuePrefix: string) {
  const { state, entries, clock, productName, receiptId } = snapshot;
  const input: SubscriptionInput = {
    state,
    entries,
    clock,
    deliver: snapshot.hasPendingEvents,
    needsResync: false,
  };
  return {
    workflowId: subscriptionWorkflowId(state.subscriptionId),
    taskQueue: `${taskQueuePrefix}${WORKFLOW_QUEUE}`,
    args: [input],
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
    typedSearchAttributes: [...attributesOf(state), ...fixedAttributesOf(receiptId)],
    staticSummary: summarize(state.terms, productName),
    memo: memoOf(productName),
    priority: priorityOf(snapshot),
  };
}

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
