/**
 * A workflow task whose worker died is handed out again after this time. It is longer than any local
 * activity. During a longer chain of local activities the SDK sends workflow task heartbeats.
 */
export const WORKFLOW_TASK_TIMEOUT = '6 seconds';
