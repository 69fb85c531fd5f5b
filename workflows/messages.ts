/** After this time another worker gets a dead worker's task. Longer than the 3 s of a local activity. */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';
