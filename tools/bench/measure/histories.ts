import proto from '@temporalio/proto';
import type { MeasuredStack } from '../stack/measured-stack.ts';

const { EventType, WorkflowExecutionStatus } = proto.temporal.api.enums.v1;

export interface RunPosition {
  readonly runId: string;
  readonly events: number;
  /** False while a workflow task or an activity is pending. */
  readonly isAsleep: boolean;
  readonly isContinued: boolean;
}

const CALL_WITHIN_MS = 10_000;
const MAX_RUNS = 20;

export function historiesOf({ temporal: connection, demo }: MeasuredStack) {
  const namespace = demo.temporalNamespace;
  const call = <Answer>(work: () => Promise<Answer>): Promise<Answer> =>
    connection.withDeadline(Date.now() + CALL_WITHIN_MS, work);

  const position = async (workflowId: string, runId = ''): Promise<RunPosition> => {
    const answer = await call(() =>
      connection.workflowService.describeWorkflowExecution({
        namespace,
        execution: { workflowId, runId },
      }),
    );
    const info = answer.workflowExecutionInfo;
    return {
      runId: info?.execution?.runId ?? '',
      events: Number(info?.historyLength ?? 0),
      isAsleep:
        (answer.pendingWorkflowTask ?? null) === null &&
        (answer.pendingActivities ?? []).length === 0,
      isContinued:
        info?.status === WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW,
    };
  };

  const lastEvent = async (workflowId: string, runId = '') => {
    const { history } = await call(() =>
      connection.workflowService.getWorkflowExecutionHistoryReverse({
        namespace,
        execution: { workflowId, runId },
        maximumPageSize: 1,
      }),
    );
    const event = history?.events?.[0];
    const { seconds, nanos } = event?.eventTime ?? {};
    return {
      type: EventType[event?.eventType ?? 0] ?? 'unknown',
      at: Number(seconds ?? 0) * 1_000 + (nanos ?? 0) / 1e6,
      /** The next run, if the event is continue-as-new. */
      nextRunId: event?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? null,
    };
  };

  /** The number of events in the workflow's history since `before`, also of later runs. */
  const eventsSince = async (workflowId: string, before: RunPosition): Promise<number> => {
    let events = -before.events;
    let runId: string | null = before.runId;
    for (let runs = 0; runId !== null && runs < MAX_RUNS; runs += 1) {
      const run: RunPosition = await position(workflowId, runId);
      events += run.events;
      runId = run.isContinued ? (await lastEvent(workflowId, runId)).nextRunId : null;
    }
    return events;
  };

  /** The number of workflow tasks since `before` that timed out or failed, and so were executed again, in its run. */
  const repeatedTasksSince = async (workflowId: string, before: RunPosition): Promise<number> => {
    const { runId, events } = before;
    const run = await position(workflowId, runId);
    if (run.events <= events) return 0;
    const { history } = await call(() =>
      connection.workflowService.getWorkflowExecutionHistoryReverse({
        namespace,
        execution: { workflowId, runId },
        maximumPageSize: run.events - events,
      }),
    );
    return (history?.events ?? []).filter(
      ({ eventType, eventId }) =>
        Number(eventId) > events &&
        (eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT ||
          eventType === EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED),
    ).length;
  };

  return { position, lastEvent, eventsSince, repeatedTasksSince };
}

export type Histories = ReturnType<typeof historiesOf>;
