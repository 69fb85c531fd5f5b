import { WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowUpdateStage } from '@temporalio/client';
import type { Client, WorkflowUpdateHandle } from '@temporalio/client';
import { ACCEPT_QUEUED_WITHIN_MS, ACCEPT_WITHIN_MS, isQueueMoving } from './client.ts';
import { WORKFLOW_QUEUES } from '../runtime/worker-options.ts';

/**
 * An update of a subscription's workflow. Of several updates with the same `updateId`, Temporal executes one.
 */
interface UpdateRequest {
  workflowId: string;
  name: string;
  updateId: string;
  input: object;
}

/**
 * Sends an update and returns its handle when a worker has accepted the update. The time limit is 4.5 s. If
 * workers poll the task queue, the update only waits behind other tasks, and the limit is extended by 12 s.
 *
 * @throws WorkflowUpdateRPCTimeoutOrCancelledError if no worker accepted the update in time. The update may
 * still be executed, once. A repeat with the same `updateId` returns its outcome.
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
