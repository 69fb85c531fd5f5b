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

/** Time that running activities have to finish after a stop. It covers one delivery window. */
export const GRACE_MS = 40_000;

/**
 * Concurrent workflow tasks of a worker. Each has a local activity that mostly waits for the gateway.
 * If the gateway takes 1 s, a worker makes at most this many charges a second.
 */
const WORKFLOW_TASKS = {
  maxConcurrentWorkflowTaskExecutions: 40,
  maxConcurrentWorkflowTaskPolls: 10,
  /** The other polls serve runs that no worker has cached. */
  nonStickyToStickyPollRatio: 0.3,
} as const;

/**
 * How long a task for a cached run waits for the worker with the cache. After that, any worker may
 * replay the run. A killed worker's tasks wait this long. If a wave of tasks takes longer, its runs are
 * replayed.
 */
const STICKY_QUEUE_TIMEOUT = '5s';

/**
 * A cached run takes about 450 kB of a workflow thread's heap, measured with 5,000 runs. A run that is
 * not cached is replayed for each task. So a worker caches as many runs as fit, with a reserve. The
 * SDK's default is a third of that.
 */
const HEAP_BYTES_PER_CACHED_RUN = 750_000;

/** Settings shared by all queues of a process, and settings for each kind of queue. */
export interface QueueSettings {
  taskQueuePrefix: string;
  /** Run as local activities on the workflow task queues. */
  activities: object;
  /** Intercepts every activity. */
  activityInterceptor: ActivityInterceptorsFactory;
  workflows: Pick<WorkerOptions, 'workflowsPath' | 'workflowBundle'>;
}

/** The options of the worker of one queue, without its connection. */
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
    // No activity is scheduled on a workflow task queue.
    enableNonLocalActivities: false,
  };
}
