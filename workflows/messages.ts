/** The task queue of every workflow. */
export const WORKFLOW_QUEUE = 'billing';

/** The priority key of workflows for which a payer or a merchant waits. Temporal dispatches lower keys first. */
export const PAYER_PRIORITY = 1;

/** After this time another worker gets a dead worker's task. Longer than the 3 s of a local activity. */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';
