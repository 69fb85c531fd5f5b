/** The task queues of workflows. A process that serves `billing` serves both. */
export const WORKFLOW_QUEUES = ['checkout', 'billing'] as const;

/** After this time another worker gets a dead worker's task. Longer than the 3 s of a local activity. */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';
