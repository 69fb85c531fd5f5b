import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client, WorkflowExecutionDescription } from '@temporalio/client';
import proto from '@temporalio/proto';
import type { Logger } from '../runtime/logger.ts';
import { accepted } from './client.ts';

const { EVENT_TYPE_WORKFLOW_TASK_COMPLETED: COMPLETED, EVENT_TYPE_WORKFLOW_TASK_FAILED: FAILED } =
  proto.temporal.api.enums.v1.EventType;

/** A run whose tasks have failed for a shorter time (in ms), for example during a deploy, is not replaced. */
export const STUCK_AFTER_MS = 60_000;

export interface StuckOptions {
  /** Time in ms for which the workflow tasks of a run must have failed. */
  readonly stuckAfterMs: number;
  readonly logger: Logger;
}

/**
 * Number of latest history events that are searched for a completed task. A failed task and its retry make 4
 * events.
 */
const LATEST_EVENTS = 50;

/**
 * Terminates a run if its workflow tasks have failed for `stuckAfterMs` and none of them has completed in this
 * time. Such a run may never recover, because its history may not fit the code. Nothing is lost: a new run
 * continues from the rows (ADR 0002). Returns true if the run was terminated, which it logs, or closed by itself; false
 * if it is not stuck or did not run. Throws if Temporal is unreachable.
 */
export async function terminateIfStuck(
  client: Client,
  { workflowId, runId, status }: WorkflowExecutionDescription,
  { stuckAfterMs, logger }: StuckOptions,
): Promise<boolean> {
  if (status.name !== 'RUNNING') return false;
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

/**
 * Returns the instant (epoch ms) of the first task failure after the last completed task; null without such a
 * failure.
 */
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
  for (const { eventType, eventTime } of history?.events ?? []) {
    if (eventType === COMPLETED) break;
    if (eventType === FAILED) sinceAt = Number(eventTime?.seconds) * 1_000;
  }
  return sinceAt;
}
