import type { Snapshot } from '../../domain/subscription/snapshot.ts';
import { summarize } from '../../domain/subscription/describe.ts';
import { WORKFLOW_TASK_TIMEOUT } from '../../workflows/messages.ts';
import {
  attributesOf,
  fixedAttributesOf,
  memoOf,
  subscriptionWorkflowId,
} from '../../workflows/subscription/messages.ts';
import type { SubscriptionInput } from '../../workflows/subscription/messages.ts';

/**
 * A merchant's first 50 subscriptions have priority key 1, up to 500 key 2, up to 5,000 key 3, the rest key 4.
 * Temporal dispatches lower keys first.
 */
const SUBSCRIPTIONS_UP_TO = [50, 500, 5_000] as const;

/** A start counts no more earlier subscriptions: from this number on, the priority key no longer changes. */
export const EARLIER_MOST = Math.max(...SUBSCRIPTIONS_UP_TO);

/**
 * Returns the priority key, 1 to 4. Renewals of a merchant with at most 50 subscriptions wait for at most 50 of each
 * other merchant.
 */
export function renewalPriority(earlierSubscriptions: number): number {
  const tier = SUBSCRIPTIONS_UP_TO.findIndex((upTo) => earlierSubscriptions < upTo);
  return (tier === -1 ? SUBSCRIPTIONS_UP_TO.length : tier) + 1;
}

export function startOptions(snapshot: Snapshot, taskQueuePrefix: string) {
  const { state, entries, clock, earlier, productName, receiptId } = snapshot;
  const { merchantId, subscriptionId } = state;
  // A payer waits for the workflow of a CREATED subscription, so its tasks must not wait behind renewals.
  const isOnCheckoutQueue = state.status === 'CREATED';
  const input: SubscriptionInput = {
    state,
    entries,
    clock,
    deliver: snapshot.hasPendingEvents,
    needsResync: false,
    isOnCheckoutQueue,
  };
  return {
    workflowId: subscriptionWorkflowId(subscriptionId),
    taskQueue: `${taskQueuePrefix}${isOnCheckoutQueue ? 'checkout' : 'billing'}`,
    args: [input],
    workflowTaskTimeout: WORKFLOW_TASK_TIMEOUT,
    workflowIdConflictPolicy: 'USE_EXISTING' as const,
    typedSearchAttributes: [...attributesOf(state), ...fixedAttributesOf(receiptId)],
    staticSummary: summarize(state.terms, productName),
    memo: memoOf(productName),
    priority: { fairnessKey: merchantId, priorityKey: renewalPriority(earlier) },
  };
}
