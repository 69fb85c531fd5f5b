import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import proto from '@temporalio/proto';
import type { Logger } from '../runtime/logger.ts';
import { accepted } from './client.ts';

const {
  EVENT_TYPE_WORKFLOW_TASK_COMPLETED: COMPLETED,
  EVENT_TYPE_WORKFLOW_TASK_FAILED: FAILED,
  EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT: TIMED_OUT,
} = proto.temporal.api.enums.v1.EventType;
const { TIMEOUT_TYPE_START_TO_CLOSE: START_TO_CLOSE } = proto.temporal.api.enums.v1.TimeoutType;
const { PENDING_WORKFLOW_TASK_STATE_STARTED: STARTED } =
  proto.temporal.api.enums.v1.PendingWorkflowTaskState;

type HistoryEvent = proto.temporal.api.history.v1.IHistoryEvent;

/** A run whose tasks have failed for a shorter time (in ms), for example during a deploy, is not replaced. */
export const STUCK_AFTER_MS = 60_000;

export interface StuckOptions {
  readonly stuckAfterMs: number;
  readonly logger: Logger;
}

/** Latest history events to search. Only the first of a row of failed tasks makes events. */
const LATEST_EVENTS = 50;

/**
 * Terminates a run whose workflow tasks have failed or timed out for `stuckAfterMs` without a success; a new run
 * continues from the rows (ADR 0002). True if terminated or closed by itself. Throws if Temporal is unreachable.
 */
export async function terminateIfStuck(
  client: Client,
  description: WorkflowExecutionDescription,
  { stuckAfterMs, logger }: StuckOptions,
): Promise<boolean> {
  const { workflowId, runId, status } = description;
  if (status.name !== 'RUNNING' || !isTaskRepeated(description)) return false;
  const failingAt = await failingSince(client, { workflowId, runId });
  if (failingAt === null || Date.now() - failingAt < stuckAfterMs) return false;
  try {
    await accepted(client, () =>
      client.workflow
        .getHandle(workflowId, runId)
        .terminate('its workflow tasks keep failing; a new run starts from the row'),
    );
    logger.error({ workflowId, runId }, 'workflow tasks kept failing; the run was terminated');
  } catch (error) {
    // The run closed before it could be terminated.
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
  return true;
}

/** True if a worker has the present workflow task, and has not completed an earlier attempt of it. */
function isTaskRepeated({ raw: { pendingWorkflowTask: task } }: WorkflowExecutionDescription) {
  return task?.state === STARTED && Number(task.attempt) > 1;
}

/** Returns the epoch ms of the first task failure or time-out after the last completed task. */
async function failingSince(
  client: Client,
  execution: { workflowId: string; runId: string },
): Promise<number | null> {
  const { history } = await accepted(client, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace: client.options.namespace,
      execution,
      maximumPageSize: LATEST_EVENTS,
    }),
  );
  let sinceAt: number | null = null;
  for (const event of history?.events ?? []) {
    if (event.eventType === COMPLETED) break;
    if (isFailure(event)) sinceAt = Number(event.eventTime?.seconds) * 1_000;
  }
  return sinceAt;
}

/** False for a task that no worker has started: Temporal offers it to another one. */
function isFailure({ eventType, workflowTaskTimedOutEventAttributes }: HistoryEvent): boolean {
  if (eventType !== TIMED_OUT) return eventType === FAILED;
  return workflowTaskTimedOutEventAttributes?.timeoutType === START_TO_CLOSE;
}
