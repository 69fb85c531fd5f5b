import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';
import { log, TemporalFailure, workflowInfo } from '@temporalio/workflow';
import { WORKFLOW_QUEUE } from './messages.ts';

/** After this silence, Temporal retries the activity. Workers send a heartbeat every second. */
const HEARTBEAT_TIMEOUT = '5 seconds';

/** The interceptor ends each call after 3 s; `localFirst` repeats it on the task queue, so one attempt is enough. */
export const INSIDE_WORKFLOW_TASK = {
  startToCloseTimeout: '4 seconds',
  retry: { maximumAttempts: 1 },
} as const satisfies LocalActivityOptions;

/**
 * The activity begins no step after 6 s. A step of slow requests can outlast the timeout; a second execution then uses
 * the same key. After five attempts the workflow executes waiting commands.
 */
export const MONEY_MOVEMENT = {
  startToCloseTimeout: '15 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '500 ms', maximumInterval: '5 seconds', maximumAttempts: 5 },
} as const satisfies ActivityOptions;

/** One short database transaction. {@link MONEY_MOVEMENT} gives the reasons for the limits. */
export const DATABASE_WRITE = {
  startToCloseTimeout: '10 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '200 ms', maximumInterval: '5 seconds', maximumAttempts: 6 },
} as const satisfies ActivityOptions;

/**
 * No request begins after 20 s. In place of a retry, the workflow starts a new drain, with its own backoff. A drain that no
 * worker takes fails after 60 s, because each signal meanwhile makes the history longer.
 */
export const WEBHOOK_DELIVERY = {
  scheduleToStartTimeout: '60 seconds',
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { maximumAttempts: 1 },
} as const satisfies ActivityOptions;

/** An event about an entered card may take 40 s. Retried for ever, because no other code handles the events. */
export const GATEWAY_EVENT = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '5 minutes' },
} as const satisfies ActivityOptions;

/** One maintenance sweep. No retries: the next sweep begins 10 s later. */
export const SWEEP = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { maximumAttempts: 1 },
} as const satisfies ActivityOptions;

/** Returns the name of another task queue, with the prefix of the queue on which this workflow runs. */
export function siblingTaskQueue(queue: 'charges' | 'webhooks'): string {
  const own = workflowInfo().taskQueue;
  const prefix = own.endsWith(WORKFLOW_QUEUE) ? own.slice(0, -WORKFLOW_QUEUE.length) : `${own}-`;
  return `${prefix}${queue}`;
}

export interface ActivityFunction<Options, Input, Output> {
  executeWithOptions(options: Options, args: [Input]): Promise<Output>;
}

/**
 * Returns a function that runs an activity inside the workflow task and, if that fails (after 3 s, without a
 * database), on its task queue; a look-up only there, so that a gateway that hangs does not occupy the worker's 40
 * workflow tasks. The activity must be safe to run twice.
 */
export function localFirst<Input, Output>(
  local: ActivityFunction<LocalActivityOptions, Input, Output>,
  queued: ActivityFunction<ActivityOptions, Input, Output>,
): (summary: string, input: Input, isLookup?: boolean) => Promise<Output> {
  return async (summary, input, isLookup = false) => {
    if (isLookup) return queued.executeWithOptions({ summary }, [input]);
    try {
      return await local.executeWithOptions({ summary }, [input]);
    } catch (error) {
      // The error of a local activity is not wrapped in an ActivityFailure.
      if (!(error instanceof TemporalFailure)) throw error;
      log.info('a local activity failed; the activity queue runs it now', {
        summary,
        reason: error.message,
      });
    }
    return queued.executeWithOptions({ summary }, [input]);
  };
}
