import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/**
 * An activity without a heartbeat for this long is retried: its process is dead or frozen. Workers send a
 * heartbeat every second.
 */
const HEARTBEAT_TIMEOUT = '5 seconds';

/**
 * A step inside a workflow task. The worker ends each call after 3 s (`activities/interceptors.ts`); this
 * time-out is for a worker that fails to do so. One attempt: the activity queue makes further ones.
 */
export const INSIDE_WORKFLOW_TASK = {
  startToCloseTimeout: '4 seconds',
  retry: { maximumAttempts: 1 },
} as const satisfies LocalActivityOptions;

/**
 * Money movement. The activity begins no request after 6 s, and a request takes at most 5 s. So a time-out
 * means that the process died. After five attempts the workflow's loop serves commands and then tries
 * again, so that an outage never keeps a subscription from its commands.
 */
export const MONEY_MOVEMENT = {
  startToCloseTimeout: '15 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '500 ms', maximumInterval: '5 seconds', maximumAttempts: 5 },
} as const satisfies ActivityOptions;

/** One short database transaction. The limits have the same reasons as {@link MONEY_MOVEMENT}. */
export const DATABASE_WRITE = {
  startToCloseTimeout: '10 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '200 ms', maximumInterval: '5 seconds', maximumAttempts: 6 },
} as const satisfies ActivityOptions;

/**
 * Delivery to merchants' servers. The activity begins no request after about 20 s. The endpoint's queue
 * sends the rest, woken by the activity or by the sweep. The second attempt is for an activity that never
 * began, because its worker stopped at the moment in which it got the activity.
 */
export const WEBHOOK_DELIVERY = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { maximumAttempts: 2 },
} as const satisfies ActivityOptions;

/** One sweep. No retries: the next sweep begins 10 s later. */
export const SWEEP = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { maximumAttempts: 1 },
} as const satisfies ActivityOptions;
