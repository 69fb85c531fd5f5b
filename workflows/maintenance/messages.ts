/** The registered type of the workflow; never changes. */
export const MAINTENANCE_WORKFLOW = 'maintenance';

/** One per namespace and task-queue prefix: whoever starts it second finds it running. */
export function maintenanceWorkflowId(taskQueuePrefix: string): string {
  return `${taskQueuePrefix}maintenance`;
}
