import { workflowInfo } from '@temporalio/workflow';

/**
 * Task queues are `<prefix>checkout`, `<prefix>billing`, `<prefix>charges`, `<prefix>webhooks`.
 * Workflows run on the first two.
 */
const WORKFLOW_QUEUES = ['billing', 'checkout'] as const;

/** Another queue of the same prefix as the one this workflow runs on. */
export function siblingTaskQueue(queue: 'billing' | 'charges' | 'webhooks'): string {
  const own = workflowInfo().taskQueue;
  const name = WORKFLOW_QUEUES.find((candidate) => own.endsWith(candidate));
  const prefix = name === undefined ? `${own}-` : own.slice(0, -name.length);
  return `${prefix}${queue}`;
}

/** Whether this run is on the queue for work that a payer or a merchant waits for. */
export function isOnCheckoutQueue(): boolean {
  return workflowInfo().taskQueue.endsWith('checkout');
}
