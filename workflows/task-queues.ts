import { workflowInfo } from '@temporalio/workflow';

/** Task queues are `<prefix>billing`, `<prefix>charges`, `<prefix>webhooks`; workflows run on the first. */
const BILLING = 'billing';

/** The activity queue beside the one this workflow runs on. */
export function siblingTaskQueue(queue: 'charges' | 'webhooks'): string {
  const own = workflowInfo().taskQueue;
  const prefix = own.endsWith(BILLING) ? own.slice(0, -BILLING.length) : `${own}-`;
  return `${prefix}${queue}`;
}
