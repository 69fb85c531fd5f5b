import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { ACCEPT_WITHIN_MS, describeWorkflow } from './client.ts';

const { EVENT_TYPE_WORKFLOW_TASK_COMPLETED: COMPLETED, EVENT_TYPE_WORKFLOW_TASK_FAILED: FAILED } =
  proto.temporal.api.enums.v1.EventType;

/** Events that are read, latest first, to find a task that succeeded. A failed task and its retry are 4. */
const LATEST_EVENTS = 50;

/**
 * Terminates a workflow's run if its tasks have failed for `stuckAfterMs` and none has succeeded since. True
 * if it did. Such a run stays where it is for ever: it was recorded by other code, or out of order. Nothing
 * is lost, because a new run can start from the row (ADR 0002). Throws if Temporal is unreachable.
 */
export async function terminateIfStuck(
  client: Client,
  workflowId: string,
  stuckAfterMs: number,
): Promise<boolean> {
  const failing = await failingRun(client, workflowId);
  if (!failing || Date.now() - failing.sinceAt < stuckAfterMs) return false;
  try {
    await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
      client.workflow
        .getHandle(workflowId, failing.runId)
        .terminate('its workflow tasks keep failing; a new run starts from the row'),
    );
  } catch (error) {
    // It ended by itself meanwhile.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  return true;
}

/** The run, with the time of the first task that failed after the last one that succeeded; else null. */
async function failingRun(
  client: Client,
  workflowId: string,
): Promise<{ runId: string; sinceAt: number } | null> {
  const description = await describeWorkflow(client, workflowId);
  if (description?.status.name !== 'RUNNING') return null;
  const { runId } = description;
  const { history } = await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace: client.options.namespace,
      execution: { workflowId, runId },
      maximumPageSize: LATEST_EVENTS,
    }),
  );
  let sinceAt: number | null = null;
  for (const { eventType, eventTime } of history?.events ?? []) {
    if (eventType === COMPLETED) break;
    if (eventType === FAILED) sinceAt = Number(eventTime?.seconds) * 1_000;
  }
  return sinceAt === null ? null : { runId, sinceAt };
}
