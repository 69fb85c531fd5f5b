import { workflowInfo } from '@temporalio/workflow';

/**
 * The task queues are `<prefix>checkout`, `<prefix>billing`, `<prefix>charges` and `<prefix>webhooks`.
 * Workflows run on the first two.
 */
const WORKFLOW_QUEUES = ['billing', 'checkout'] as const;

/** Returns the name of another task queue, with the prefix of the queue on which this workflow runs. */
export function siblingTaskQueue(queue: 'billing' | 'charges' | 'webhooks'): string {
  const own = workflowInfo().taskQueue;
  const name = WORKFLOW_QUEUES.find((candidate) => own.endsWith(candidate));
  const prefix = name === undefined ? `${own}-` : own.slice(0, -name.length);
  return `${prefix}${queue}`;
}
