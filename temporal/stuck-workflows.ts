import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import proto from '@temporalio/proto';
import { ACCEPT_WITHIN_MS } from './client.ts';

const { EVENT_TYPE_WORKFLOW_TASK_COMPLETED: COMPLETED, EVENT_TYPE_WORKFLOW_TASK_FAILED: FAILED } =
  proto.temporal.api.enums.v1.EventType;

/** Events that are read, latest first, to find a task that succeeded. A failed task and its retry are 4. */
const LATEST_EVENTS = 50;

/**
 * Terminates a workflow's run if its tasks have failed for `stuckAfterMs` and none has succeeded since. True
 * if it did. No replay can follow the history of such a run: it was recorded by other code, or out of order.
 * Nothing is lost, because a new run can start from the row (ADR 0002). Throws if Temporal is unreachable.
 */
export async function terminateIfStuck(
  client: Client,
  { workflowId, runId, status }: WorkflowExecutionDescription,
  stuckAfterMs: number,
): Promise<boolean> {
  if (status.name !== 'RUNNING') return false;
  const failingAt = await failingSince(client, { workflowId, runId });
  if (failingAt === null || Date.now() - failingAt < stuckAfterMs) return false;
  try {
    await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
      client.workflow
        .getHandle(workflowId, runId)
        .terminate('its workflow tasks keep failing; a new run starts from the row'),
    );
  } catch (error) {
    // It ended by itself meanwhile.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  return true;
}

/** When the first task failed after the last one that succeeded, epoch ms; null if none did. */
async function failingSince(
  client: Client,
  execution: { workflowId: string; runId: string },
): Promise<number | null> {
  const { history } = await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace: client.options.namespace,
      execution,
      maximumPageSize: LATEST_EVENTS,
    }),
  );
  let sinceAt: number | null = null;
  for (const { eventType, eventTime } of history?.events ?? []) {
    if (eventType === COMPLETED) break;
    if (eventType === FAILED) sinceAt = Number(eventTime?.seconds) * 1_000;
  }
  return sinceAt;
}
