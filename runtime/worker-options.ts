import { getHeapStatistics } from 'node:v8';
import type { WorkerOptions } from '@temporalio/worker';
import type { QueueName } from './config.ts';

/** Where workflows run. A process that serves `billing` serves both. */
export const WORKFLOW_QUEUES = ['checkout', 'billing'] as const;
export type TaskQueueName = QueueName | (typeof WORKFLOW_QUEUES)[number];

/** The task queues that a process with these settings serves. */
export function taskQueuesOf(queues: readonly QueueName[]): TaskQueueName[] {
  return queues.flatMap((queue): readonly TaskQueueName[] =>
    queue === 'billing' ? WORKFLOW_QUEUES : [queue],
  );
}

/** How long running activities may take to finish after a stop: as long as a turn of deliveries. */
export const GRACE_MS = 40_000;

/**
 * Workflow tasks in hand at once, each with a local activity that mostly waits for the gateway. With a
 * gateway that takes 1 s it bounds a worker to as many charges a second.
 */
const WORKFLOW_TASKS = {
  maxConcurrentWorkflowTaskExecutions: 40,
  maxConcurrentWorkflowTaskPolls: 10,
  /** The other polls are for runs that no worker has cached. */
  nonStickyToStickyPollRatio: 0.3,
} as const;

/**
 * A task for a cached run waits this long for the worker that has it; then any worker may replay the run.
 * It is how long a killed worker's tasks wait, and what a wave that takes longer pays with replays.
 */
const STICKY_QUEUE_TIMEOUT = '5s';

/**
 * A cached run takes about 450 kB of a workflow thread's heap (5,000 measured). A run that is not cached is
 * replayed for each task, so a worker caches as many as fit with a reserve; the SDK would cache a third.
 */
const HEAP_BYTES_PER_CACHED_RUN = 750_000;

/** What the queues of one process share, and what differs by queue. */
export interface QueueSettings {
  taskQueuePrefix: string;
  /** For the queues of activities. */
  activities: object;
  /** For workflows: the same activities, as local ones. */
  localActivities: object;
  workflows: Pick<WorkerOptions, 'workflowsPath' | 'workflowBundle'>;
}

/** The options of the worker of one queue, without its connection. */
export function workerOptionsOf(queue: TaskQueueName, settings: QueueSettings): WorkerOptions {
  const shared: WorkerOptions = {
    taskQueue: `${settings.taskQueuePrefix}${queue}`,
    shutdownGraceTime: GRACE_MS,
    maxHeartbeatThrottleInterval: '1s',
  };
  const runsWorkflows = (WORKFLOW_QUEUES as readonly string[]).includes(queue);
  if (!runsWorkflows) return { ...shared, activities: settings.activities };
  return {
    ...shared,
    ...settings.workflows,
    ...WORKFLOW_TASKS,
    stickyQueueScheduleToStartTimeout: STICKY_QUEUE_TIMEOUT,
    maxCachedWorkflows: Math.floor(getHeapStatistics().heap_size_limit / HEAP_BYTES_PER_CACHED_RUN),
    activities: settings.localActivities,
    // Nothing sends activities to a queue of workflows.
    enableNonLocalActivities: false,
  };
}
