/**
 * A workflow task whose worker died is handed out again after this time. Longer than any local
 * activity; a longer chain of them is reported by the SDK as a heartbeat before it ends.
 */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';
