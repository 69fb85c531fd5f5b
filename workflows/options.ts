import type { ActivityOptions, LocalActivityOptions } from '@temporalio/workflow';

/**
 * Without a sign of life for so long its process is dead or frozen, and the activity is tried again.
 * Workers send one every second.
 */
const HEARTBEAT_TIMEOUT = '5 seconds';

/**
 * A step inside a workflow task. The worker ends each call after 3 s (`activities/local.ts`); this limit
 * is for a worker that cannot. One try: the activity queue makes the others.
 */
export const INSIDE_WORKFLOW_TASK = {
  startToCloseTimeout: '4 seconds',
  retry: { maximumAttempts: 1 },
} as const satisfies LocalActivityOptions;

/**
 * Money movement. The activity bounds itself well below the time-out (its sends and questions stop
 * after 6 s, the gateway's own limit is 5 s), so a time-out means that its process died. A few tries,
 * then the loop serves commands and comes back: an outage never makes a subscription deaf.
 */
export const MONEY_MOVEMENT = {
  startToCloseTimeout: '15 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '500 ms', maximumInterval: '5 seconds', maximumAttempts: 5 },
} as const satisfies ActivityOptions;

/** One short database transaction. Same reasoning. */
export const DATABASE_WRITE = {
  startToCloseTimeout: '10 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { initialInterval: '200 ms', maximumInterval: '5 seconds', maximumAttempts: 6 },
} as const satisfies ActivityOptions;

/**
 * Delivery to other people's servers: stops itself after about 20 s of sends. What a turn leaves is the
 * stream workflow's, woken by the activity or by the sweep; the second try is for a turn that never
 * began, handed to a worker that stopped at that moment.
 */
export const WEBHOOK_DELIVERY = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { maximumAttempts: 2 },
} as const satisfies ActivityOptions;

/** One pass over what should not be there. The next pass comes in seconds: no retries. */
export const SWEEP = {
  startToCloseTimeout: '60 seconds',
  heartbeatTimeout: HEARTBEAT_TIMEOUT,
  retry: { maximumAttempts: 1 },
} as const satisfies ActivityOptions;
