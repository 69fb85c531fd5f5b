import { WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowUpdateStage } from '@temporalio/client';
import type { Client, WorkflowUpdateHandle } from '@temporalio/client';
import { ACCEPT_QUEUED_WITHIN_MS, ACCEPT_WITHIN_MS, isQueueMoving } from '../client.ts';
import { WORKFLOW_QUEUES } from '../../runtime/worker-options.ts';

interface UpdateRequest {
  workflowId: string;
  name: string;
  updateId: string;
  input: object;
}

/**
 * Sends an update; returns its handle when a worker has accepted it, within 4.5 s, or 12 s more if workers poll.
 * @throws WorkflowUpdateRPCTimeoutOrCancelledError: it may still be executed, once; a repeat with its `updateId`
 * returns its outcome.
 */
export async function acceptedUpdate<Result>(
  client: Client,
  taskQueuePrefix: string,
  { workflowId, name, updateId, input }: UpdateRequest,
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
    if (!(await isAnyQueueMoving(client, taskQueuePrefix))) throw error;
    return offer(ACCEPT_QUEUED_WITHIN_MS);
  }
}

/** True if workers poll a queue on which the workflow may run. False if Temporal does not answer. */
async function isAnyQueueMoving(client: Client, taskQueuePrefix: string): Promise<boolean> {
  try {
    for (const queue of WORKFLOW_QUEUES) {
      if (await isQueueMoving(client, `${taskQueuePrefix}${queue}`)) return true;
    }
    return false;
  } catch {
    return false;
  }
}
