import { setTimeout as sleep } from 'node:timers/promises';
import { isGrpcCancelledError, isGrpcDeadlineError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import type { Logger } from './logger.ts';

/**
 * A run that a worker has cached is handed to that worker through a queue of its own, its sticky queue.
 * When the worker dies, what waits there would wait for the queue's time-out of minutes. Any process
 * may poll that queue: this one takes the tasks out and gives them back unprocessed, whereupon Temporal
 * hands them to a living worker.
 */

const { EventType, TaskQueueKind, TaskQueueType, WorkflowTaskFailedCause } =
  proto.temporal.api.enums.v1;
const STICKY = TaskQueueKind.TASK_QUEUE_KIND_STICKY;
const IDENTITY = 'perennial: sticky queue release';

/** A task waits, and no poll in this time: the worker is dead, frozen or has no slot free. */
const SILENT_FOR_MS = 2_500;
/** A poll that finds nothing is given up after this. */
const POLL_MS = 1_500;
/** The server refuses a poll that says it waits for less than 2 s. */
const POLL_DEADLINE_MS = 5_000;
const POLLS_AT_ONCE = 8;
/** Of one release; the next look finds the others. */
const TASKS_MAX = 10_000;
const RPC_MS = 2_000;

/** A sticky queue and the ordinary one that it stands before. */
interface StickyQueue {
  name: string;
  normalName: string;
}

/**
 * Empties the sticky queue in which this workflow's task waits, if its worker no longer polls. Answers
 * how many tasks were given back: 0 when nothing waits or the worker is alive. Harmless when it errs:
 * the task then runs on another worker, from its history.
 *
 * @throws ServiceError when Temporal does not answer within seconds.
 */
export async function releaseStickyQueue(client: Client, workflowId: string): Promise<number> {
  const { namespace } = client.options;
  const queue = await waitingIn(client, namespace, workflowId);
  if (!queue || (await isPolled(client, namespace, queue))) return 0;
  const counts = await Promise.all(
    Array.from({ length: POLLS_AT_ONCE }, () => giveBackAll(client, namespace, queue)),
  );
  // Polling made the queue look alive; this has the server forget it.
  await within(client, RPC_MS, () =>
    client.workflowService.shutdownWorker({
      namespace,
      stickyTaskQueue: queue.name,
      identity: IDENTITY,
      reason: 'its worker is gone',
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The sticky queue in which a task of the workflow waits for a worker; null when none does. */
async function waitingIn(
  client: Client,
  namespace: string,
  workflowId: string,
): Promise<StickyQueue | null> {
  const { history } = await within(client, RPC_MS, () =>
    client.workflowService.getWorkflowExecutionHistoryReverse({
      namespace,
      execution: { workflowId },
      maximumPageSize: 10,
    }),
  );
  const latest = history?.events?.find(({ eventType }) => isTaskEvent(eventType));
  const queue = latest?.workflowTaskScheduledEventAttributes?.taskQueue;
  if (queue?.kind !== STICKY || !queue.name || !queue.normalName) return null;
  return { name: queue.name, normalName: queue.normalName };
}

const TASK_EVENTS: readonly unknown[] = [
  EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
  EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
  EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
  EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
  EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
];

function isTaskEvent(type: unknown): boolean {
  return TASK_EVENTS.includes(type);
}

async function isPolled(client: Client, namespace: string, queue: StickyQueue): Promise<boolean> {
  const { pollers } = await within(client, RPC_MS, () =>
    client.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { ...queue, kind: STICKY },
      taskQueueType: TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    }),
  );
  const since = Date.now() - SILENT_FOR_MS;
  return (pollers ?? []).some(
    ({ lastAccessTime, identity }) =>
      identity !== IDENTITY && Number(lastAccessTime?.seconds ?? 0) * 1_000 > since,
  );
}

/** Gives back what one poll after the other finds, until one finds nothing. */
async function giveBackAll(client: Client, namespace: string, queue: StickyQueue): Promise<number> {
  const limit = TASKS_MAX / POLLS_AT_ONCE;
  for (let count = 0; count < limit; count += 1) {
    const taskToken = await poll(client, namespace, queue);
    if (!taskToken) return count;
    await within(client, RPC_MS, () =>
      client.workflowService.respondWorkflowTaskFailed({
        namespace,
        taskToken,
        cause: WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
        identity: IDENTITY,
      }),
    );
  }
  return limit;
}

async function poll(
  client: Client,
  namespace: string,
  queue: StickyQueue,
): Promise<Uint8Array | null> {
  try {
    const { taskToken } = await within(client, POLL_DEADLINE_MS, () =>
      client.withAbortSignal(AbortSignal.timeout(POLL_MS), () =>
        client.workflowService.pollWorkflowTaskQueue({
          namespace,
          taskQueue: { ...queue, kind: STICKY },
          identity: IDENTITY,
        }),
      ),
    );
    return taskToken && taskToken.length > 0 ? taskToken : null;
  } catch (error) {
    if (isGrpcCancelledError(error) || isGrpcDeadlineError(error)) return null;
    throw error;
  }
}

function within<T>(client: Client, ms: number, call: () => Promise<T>): Promise<T> {
  return client.withDeadline(Date.now() + ms, call);
}

export interface StickyQueueWatchDeps {
  client: Client;
  /** A few workflows that should have done something by now. */
  lateWorkflowIds: () => Promise<string[]>;
  logger: Pick<Logger, 'info' | 'warn'>;
}

const LOOK_EVERY_MS = 1_000;

/**
 * Looks every second whether late workflows wait for a dead worker, and releases its queue. Every
 * worker process does it, so the first that is there after a kill helps. Never throws. Answers how to
 * end it.
 */
export function watchStickyQueues(deps: StickyQueueWatchDeps): () => Promise<void> {
  const { client, lateWorkflowIds, logger } = deps;
  const ending = new AbortController();

  const look = async (): Promise<void> => {
    for (const workflowId of await lateWorkflowIds()) {
      const released = await releaseStickyQueue(client, workflowId);
      if (released > 0) {
        logger.info({ released }, 'tasks of a worker that is gone were given to the others');
        return;
      }
    }
  };
  const looks = (async (): Promise<void> => {
    while (!ending.signal.aborted) {
      await look().catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        logger.warn({ error: reason }, 'late workflows could not be looked at');
      });
      await sleep(LOOK_EVERY_MS, undefined, { signal: ending.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    ending.abort();
    await looks;
  };
}
