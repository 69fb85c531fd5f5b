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
  readonly stuckAfterMs: number;
  readonly logger: Logger;
}

/** Latest history events to search. A failed task and its retry make 4 events. */
const LATEST_EVENTS = 50;

/**
 * Terminates a run whose workflow tasks have failed for `stuckAfterMs` without a success; a new run continues from
 * the rows (ADR 0002). True if terminated or closed by itself. Throws if Temporal is unreachable.
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

/** Returns the epoch ms of the first task failure after the last completed task. */
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
