import type { WorkerDeploymentVersion } from '@temporalio/common';
import type { ActivityInterceptorsFactory, WorkerOptions } from '@temporalio/worker';
import { WORKFLOW_QUEUE } from '../workflows/messages.ts';
import type { QueueName } from './config.ts';
import { dataConverter } from './payload-digest.ts';
import { buildIdOf } from './workflow-bundle.ts';
import type { WorkflowBundle } from './workflow-bundle.ts';
import type { WorkflowTaskSlots } from './workflow-task-slots.ts';

/** Time in ms that running activities get to end after a stop, enough for a `drainEndpoint` activity. */
export const GRACE_MS = 40_000;

/** The SDK's default, which must be given as soon as one kind of slots is our own. */
const DEFAULT_SLOTS = { type: 'fixed-size', numSlots: 100 } as const;
const WORKFLOW_TASK_POLLS = 12;
/** No poll but one, which gets no slot ({@link WorkflowTaskSlots}), is for the worker's sticky queue. */
const NON_STICKY_POLLS = 1;

/** Temporal counts this time also while a task waits on the shared queue. A shorter one repeats the tasks of a wave. */
const STICKY_QUEUE_TIMEOUT = '15m';

/** A run sleeps for a month, so only busy runs need a place. At each step of a task the SDK walks through all places. */
const CACHED_RUNS = 500;

export interface QueueSettings {
  taskQueuePrefix: string;
  /** All activities. The workers of `billing` run them as local activities. */
  activities: object;
  activityInterceptor: ActivityInterceptorsFactory;
  workflowBundle: WorkflowBundle;
  workflowTaskSlots: WorkflowTaskSlots;
  /** Null: Temporal gives a task to a worker of any build. */
  deployment: WorkerDeploymentVersion | null;
}

export function workerOptionsOf(queue: QueueName, settings: QueueSettings): WorkerOptions {
  const shared: WorkerOptions = {
    taskQueue: `${settings.taskQueuePrefix}${queue}`,
    shutdownGraceTime: GRACE_MS,
    maxHeartbeatThrottleInterval: '1s',
    activities: settings.activities,
    dataConverter,
    interceptors: { activity: [settings.activityInterceptor] },
    ...(settings.deployment !== null && {
      workerDeploymentOptions: {
        version: settings.deployment,
        useWorkerVersioning: true,
        // A sleeping run moves to the current build at its next task; pinned to its own, it would keep it for a year.
        defaultVersioningBehavior: 'AUTO_UPGRADE',
      },
    }),
  };
  if (queue !== WORKFLOW_QUEUE) return shared;
  return {
    ...shared,
    workflowBundle: settings.workflowBundle,
    ...(settings.deployment === null && { buildId: buildIdOf(settings.workflowBundle) }),
    tuner: {
      workflowTaskSlotSupplier: settings.workflowTaskSlots,
      activityTaskSlotSupplier: DEFAULT_SLOTS,
      localActivityTaskSlotSupplier: DEFAULT_SLOTS,
      nexusTaskSlotSupplier: DEFAULT_SLOTS,
    },
    maxConcurrentWorkflowTaskPolls: WORKFLOW_TASK_POLLS,
    nonStickyToStickyPollRatio: NON_STICKY_POLLS,
    stickyQueueScheduleToStartTimeout: STICKY_QUEUE_TIMEOUT,
    maxCachedWorkflows: CACHED_RUNS,
    // Workflows schedule no activity on their own task queue.
    enableNonLocalActivities: false,
  };
}
