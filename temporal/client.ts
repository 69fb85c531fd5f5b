import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Logger as TemporalLogger, LogLevel } from '@temporalio/common';
import proto from '@temporalio/proto';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { Logger } from '../runtime/logger.ts';

/** Time limit for Temporal to accept a call. The caller's refusal within 5 s depends on it. */
export const ACCEPT_WITHIN_MS = 4_500;
/** Extra time while workers take tasks from the queue: the call then only waits in the queue. */
export const ACCEPT_QUEUED_WITHIN_MS = 12_000;
/** How long a caller waits for the outcome, from the start of the call. */
export const ANSWER_WITHIN_MS = 25_000;

export interface TemporalSettings {
  temporalAddress: string;
  temporalNamespace: string;
}

/**
 * Connection options for Temporal. Address and namespace come from our settings; API key, TLS and
 * profiles come from Temporal's own variables. So the same processes run against a local server, a
 * cluster and Temporal Cloud.
 */
export function temporalConnectionOptions(settings: TemporalSettings) {
  const { connectionOptions } = loadClientConnectConfig();
  return { ...connectionOptions, address: settings.temporalAddress };
}

export interface TemporalClient {
  client: Client;
  close(): Promise<void>;
}

/** A client that connects with its first call, so the API starts and answers without Temporal. */
export function createTemporalClient(settings: TemporalSettings): TemporalClient {
  const connection = Connection.lazy(temporalConnectionOptions(settings));
  const client = new Client({ connection, namespace: settings.temporalNamespace });
  return { client, close: () => connection.close() };
}

/** True if the workflow runs. False if Temporal does not know it. Temporal must answer within 4.5 s. */
export async function isRunning(client: Client, workflowId: string): Promise<boolean> {
  return (await describeWorkflow(client, workflowId))?.status.name === 'RUNNING';
}

/** True if a task or an activity of the workflow waits for a worker or runs. */
export function hasWorkPending({ raw }: WorkflowExecutionDescription): boolean {
  const { pendingWorkflowTask, pendingActivities } = raw;
  return Boolean(pendingWorkflowTask) || (pendingActivities ?? []).length > 0;
}

/** Null if Temporal does not know the workflow. Temporal must answer within 4.5 s. */
export async function describeWorkflow(
  client: Client,
  workflowId: string,
): Promise<WorkflowExecutionDescription | null> {
  try {
    return await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
      client.workflow.getHandle(workflowId).describe(),
    );
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

/** A queue counts as moving if a worker polled it within this time, however long the queue is. */
const POLLED_WITHIN_MS = 3_000;

/** True if workers take workflow tasks from this queue now. */
export async function isQueueMoving(client: Client, taskQueue: string): Promise<boolean> {
  const { pollers } = await client.withDeadline(Date.now() + ACCEPT_WITHIN_MS, () =>
    client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name: taskQueue },
      taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    }),
  );
  const since = Date.now() - POLLED_WITHIN_MS;
  return (pollers ?? []).some(
    ({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1_000 > since,
  );
}

const LEVELS = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  ERROR: 'error',
} as const satisfies Record<LogLevel, keyof Logger>;

/** Adapts our logger to the Temporal SDK. */
export function temporalLogger(logger: Logger): TemporalLogger {
  const write = (level: LogLevel, message: string, meta?: object): void => {
    logger[LEVELS[level]](plain(meta), message);
  };
  return {
    log: write,
    trace: (message, meta) => write('TRACE', message, meta),
    debug: (message, meta) => write('DEBUG', message, meta),
    info: (message, meta) => write('INFO', message, meta),
    warn: (message, meta) => write('WARN', message, meta),
    error: (message, meta) => write('ERROR', message, meta),
  };
}

/** The SDK's fields hold bigints and errors, which JSON cannot represent. */
function plain(meta: object | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(meta ?? {}).map(([key, value]: [string, unknown]) => [
      key,
      typeof value === 'bigint' ? value.toString() : value instanceof Error ? value.message : value,
    ]),
  );
}
