/**
 * Start-to-close timeout of workflow tasks: if a worker dies, another worker gets its task after this time.
 * The timeout exceeds the 3 s of a local activity. If a task runs several local activities, the SDK extends
 * the timeout by heartbeats.
 */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';
