import { getHeapStatistics } from 'node:v8';
import type { ActivityInterceptorsFactory, WorkerOptions } from '@temporalio/worker';
import type { QueueName } from './config.ts';

/** The task queues of workflows. A process that serves `billing` serves both. */
export const WORKFLOW_QUEUES = ['checkout', 'billing'] as const;
export type TaskQueueName = QueueName | (typeof WORKFLOW_QUEUES)[number];

/** The task queues that a process with these settings serves. */
export function taskQueuesOf(queues: readonly QueueName[]): TaskQueueName[] {
  return queues.flatMap((queue): readonly TaskQueueName[] =>
    queue === 'billing' ? WORKFLOW_QUEUES : [queue],
  );
}

/** Time in ms that running activities have to end after a stop. Enough for the drain of an endpoint. */
export const GRACE_MS = 40_000;

/**
 * Limits of a worker's concurrent workflow tasks. A workflow task runs a local activity, which mostly waits
 * for the gateway. If the gateway takes 1 s, a worker makes at most 40 charges per second.
 */
const WORKFLOW_TASKS = {
  maxConcurrentWorkflowTaskExecutions: 40,
  maxConcurrentWorkflowTaskPolls: 10,
  /** The other 70 % of the polls are for the sticky queue: tasks of runs that this worker has cached. */
  nonStickyToStickyPollRatio: 0.3,
} as const;

/**
 * How long a task of a cached run waits for the worker with the cache. After that, any worker may replay the
 * run. A longer time delays the tasks of a killed worker; a shorter time causes replays under load.
 */
const STICKY_QUEUE_TIMEOUT = '5s';

/**
 * A cached run takes about 450 kB of a workflow thread's heap, measured with 5,000 runs. A run that is not
 * cached is replayed for each task, so a worker caches as many runs as the heap can hold, with a reserve.
 * The SDK's default is a third of that number.
 */
const HEAP_BYTES_PER_CACHED_RUN = 750_000;

/** Settings of a process for its workers. */
export interface QueueSettings {
  taskQueuePrefix: string;
  /** The activities. Workers of workflow task queues run them as local activities. */
  activities: object;
  /** Intercepts every activity. */
  activityInterceptor: ActivityInterceptorsFactory;
  workflows: Pick<WorkerOptions, 'workflowsPath' | 'workflowBundle'>;
}

/** Returns the options for the worker of one task queue, without its connection. */
export function workerOptionsOf(queue: TaskQueueName, settings: QueueSettings): WorkerOptions {
  const shared: WorkerOptions = {
    taskQueue: `${settings.taskQueuePrefix}${queue}`,
    shutdownGraceTime: GRACE_MS,
    maxHeartbeatThrottleInterval: '1s',
    activities: settings.activities,
    interceptors: { activity: [settings.activityInterceptor] },
  };
  const runsWorkflows = (WORKFLOW_QUEUES as readonly string[]).includes(queue);
  if (!runsWorkflows) return shared;
  return {
    ...shared,
    ...settings.workflows,
    ...WORKFLOW_TASKS,
    stickyQueueScheduleToStartTimeout: STICKY_QUEUE_TIMEOUT,
    maxCachedWorkflows: Math.floor(getHeapStatistics().heap_size_limit / HEAP_BYTES_PER_CACHED_RUN),
    // Workflows schedule no activity on a workflow task queue.
    enableNonLocalActivities: false,
  };
}
