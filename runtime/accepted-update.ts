import { WorkflowUpdateRPCTimeoutOrCancelledError, WorkflowUpdateStage } from '@temporalio/client';
import type { Client, WorkflowHandle, WorkflowUpdateHandle } from '@temporalio/client';
import { poke } from '../workflows/subscription/messages.ts';
import { releaseStickyQueue } from './sticky-queues.ts';
import { ACCEPT_QUEUED_WITHIN_MS, ACCEPT_WITHIN_MS, isQueueMoving } from './temporal.ts';
import { WORKFLOW_QUEUES } from './worker-options.ts';

const SIGNAL_WITHIN_MS = 1_000;

/** An update of a subscription's workflow; the same id is the same update. */
interface Offer {
  workflowId: string;
  name: string;
  updateId: string;
  input: object;
}

/**
 * The update, once a worker has accepted it: within 4.5 s, or within 17 s while workers take tasks from
 * the queue, because then it only waits for its turn. The task of a workflow that a dead worker had
 * cached is given to the others first.
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
    if (!(await isWorthWaiting(client, taskQueuePrefix, handle))) throw error;
    return offer(ACCEPT_QUEUED_WITHIN_MS);
  }
}

/** Workers take tasks, or the task waited for a dead one and was just given to the others. */
async function isWorthWaiting(
  client: Client,
  taskQueuePrefix: string,
  handle: WorkflowHandle,
): Promise<boolean> {
  try {
    for (const queue of WORKFLOW_QUEUES) {
      if (await isQueueMoving(client, `${taskQueuePrefix}${queue}`)) return true;
    }
    // The signal has the server write the waiting task down; before that its queue is not known.
    await client.withDeadline(Date.now() + SIGNAL_WITHIN_MS, () => handle.signal(poke));
    return (await releaseStickyQueue(client, handle.workflowId)) > 0;
  } catch {
    return false;
  }
}
