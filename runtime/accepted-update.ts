import { WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowUpdateStage } from '@temporalio/client';
import type { Client, WorkflowUpdateHandle } from '@temporalio/client';
import { ACCEPT_QUEUED_WITHIN_MS, ACCEPT_WITHIN_MS, isQueueMoving } from './temporal.ts';
import { WORKFLOW_QUEUES } from './worker-options.ts';

/** An update of a subscription's workflow; the same id is the same update. */
interface Offer {
  workflowId: string;
  name: string;
  updateId: string;
  input: object;
}

/**
 * The update, once a worker has accepted it: within 4.5 s, or within 17 s while workers take tasks from
 * the queue, because then it only waits for its turn.
 *
 * @throws WorkflowUpdateRPCTimeoutOrCancelledError when nothing accepted it in time: it may still be
 * carried out, once, and offering it again finds out.
 */
export async function acceptedUpdate<Result>(
  client: Client,
  taskQueuePrefix: string,
  { workflowId, name, updateId, input }: Offer,
): Promise<WorkflowUpdateHandle<Result>> {
  const handle = client.workflow.getHandle(workflowId);
  const offer = (ms: number) =>
    client.withDeadline(Date.now() + ms, () =>
      handle.startUpdate<Result, [object]>(name, {
        args: [input],
        updateId,
        waitForStage: WorkflowUpdateStage.ACCEPTED,
      }),
    );
  try {
    return await offer(ACCEPT_WITHIN_MS);
  } catch (error) {
    if (!(error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) throw error;
    if (!(await isAnyMoving(client, taskQueuePrefix))) throw error;
    return offer(ACCEPT_QUEUED_WITHIN_MS);
  }
}

/** Whether workers take tasks from a queue on which the workflow may run. False when nothing tells. */
async function isAnyMoving(client: Client, taskQueuePrefix: string): Promise<boolean> {
  try {
    for (const queue of WORKFLOW_QUEUES) {
      if (await isQueueMoving(client, `${taskQueuePrefix}${queue}`)) return true;
    }
    return false;
  } catch {
    return false;
  }
}
