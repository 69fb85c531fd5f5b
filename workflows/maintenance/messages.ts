/** The registered type of the workflow; never changes. */
export const MAINTENANCE_WORKFLOW = 'maintenance';

/** One workflow per namespace and task-queue prefix. A second start finds it running. */
export function maintenanceWorkflowId(taskQueuePrefix: string): string {
  return `${taskQueuePrefix}maintenance`;
}
