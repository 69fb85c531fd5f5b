import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import type { Logger as TemporalLogger, LogLevel } from '@temporalio/common';
import proto from '@temporalio/proto';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { Logger } from './logger.ts';

/** How long Temporal may take to accept what it is handed: its refusal is told within 5 s. */
export const ACCEPT_WITHIN_MS = 4_500;
/** The same while workers take tasks from the queue: it only waits for its turn. */
export const ACCEPT_QUEUED_WITHIN_MS = 12_000;
/** How long a caller waits for the outcome of what was accepted, from the start of the call. */
export const ANSWER_WITHIN_MS = 25_000;

export interface TemporalSettings {
  temporalAddress: string;
  temporalNamespace: string;
}

/**
 * How to reach Temporal: address and namespace from our settings, everything else (API key, TLS,
 * profiles) from Temporal's own variables, so that the same processes run against a local server, a
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

/** A client that connects with its first call: the API starts and answers without Temporal. */
export function createTemporalClient(settings: TemporalSettings): TemporalClient {
  const connection = Connection.lazy(temporalConnectionOptions(settings));
  const client = new Client({ connection, namespace: settings.temporalNamespace });
  return { client, close: () => connection.close() };
}

/** Whether a workflow runs, as Temporal says within 4.5 s; one that it does not know does not. */
export async function isRunning(client: Client, workflowId: string): Promise<boolean> {
  return (await describe(client, workflowId))?.status.name === 'RUNNING';
}

/** Whether a task or an activity of the workflow waits for a worker or runs on one. */
export async function hasWorkPending(client: Client, workflowId: string): Promise<boolean> {
  const { pendingWorkflowTask, pendingActivities } =
    (await describe(client, workflowId))?.raw ?? {};
  return Boolean(pendingWorkflowTask) || (pendingActivities ?? []).length > 0;
}

/** Null for a workflow that Temporal does not know. */
async function describe(
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

/** A queue whose workers asked for a task in this time moves, however long it is. */
const POLLED_WITHIN_MS = 3_000;

/** Whether workers take tasks of workflows from this queue now. */
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

/** Our logger in the form the Temporal SDK writes to. */
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

/** The SDK's fields hold bigints and errors, which JSON cannot write. */
function plain(meta: object | undefined): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(meta ?? {}).map(([key, value]: [string, unknown]) => [
      key,
      typeof value === 'bigint' ? value.toString() : value instanceof Error ? value.message : value,
    ]),
  );
}
