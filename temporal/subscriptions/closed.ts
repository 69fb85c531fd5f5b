import type { Client } from '@temporalio/client';
import type { SubscriptionRef } from '../../domain/subscription/state.ts';
import { SUBSCRIPTION_WORKFLOW } from '../../workflows/subscription/messages.ts';

/** Time limit in ms for all pages of the list together. */
const LIST_WITHIN_MS = 10_000;

/**
 * Returns the subscriptions whose workflow closed since `sinceAt` without completing, latest first; after an error or
 * 10 s those found so far. Throws if none was found before the error.
 */
export async function closedSince(
  client: Client,
  taskQueuePrefix: string,
  sinceAt: number,
): Promise<SubscriptionRef[]> {
  const closed = client.workflow.list({
    query: [
      ...ofSubscriptions(taskQueuePrefix),
      `ExecutionStatus IN ('Failed', 'Terminated', 'TimedOut', 'Canceled')`,
      `CloseTime > '${new Date(sinceAt).toISOString()}'`,
    ].join(' AND '),
  });
  const found = new Map<string, SubscriptionRef>();
  const readAll = async (): Promise<void> => {
    for await (const { workflowId, memo } of closed) {
      const { merchantId, subscriptionId } = memo ?? {};
      if (typeof merchantId !== 'string' || typeof subscriptionId !== 'string') continue;
      found.set(workflowId, { merchantId, subscriptionId });
    }
  };
  try {
    await client.withDeadline(Date.now() + LIST_WITHIN_MS, readAll);
  } catch (error) {
    // The subscriptions found so far can be started. The next maintenance sweep lists again.
    if (found.size === 0) throw error;
  }
  return [...found.values()];
}

/** Returns the number of running workflows of subscriptions. Throws if Temporal does not answer within 10 s. */
export async function countRunning(client: Client, taskQueuePrefix: string): Promise<number> {
  const query = [...ofSubscriptions(taskQueuePrefix), `ExecutionStatus = 'Running'`].join(' AND ');
  const { count } = await client.withDeadline(Date.now() + LIST_WITHIN_MS, () =>
    client.workflow.count(query),
  );
  return count;
}

function ofSubscriptions(taskQueuePrefix: string): string[] {
  return [
    `WorkflowType = '${SUBSCRIPTION_WORKFLOW}'`,
    `TaskQueue IN ('${taskQueuePrefix}billing', '${taskQueuePrefix}checkout')`,
  ];
}
